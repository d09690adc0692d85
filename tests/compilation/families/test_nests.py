"""From groups to nests: axes that merge, the axis of vectors, entries with their scratch memory and bounds."""

from __future__ import annotations

import pytest

from sabir.compilation.backends.cpu.elementwise.axes import beside_one, merged, nest_of
from sabir.compilation.backends.cpu.elementwise.entries import nest_entry, scratch_of
from sabir.compilation.backends.cpu.elementwise.nesting import Nesting, Place, nesting_of
from sabir.compilation.backends.cpu.emit.nest import (
    Apply,
    ConstantStep,
    Fold,
    Load,
    Position,
    SizeArgument,
    TakeStep,
)
from sabir.compilation.backends.cpu.heuristics import HEURISTICS
from sabir.compilation.backends.cpu.reaches import reaches_of, values_of
from sabir.compilation.fusion.views import Located
from sabir.compilation.plan.bounds import ComputedTensor
from sabir.compilation.plan.entries import Buffer
from sabir.ir import symbol
from sabir.loops import Stored
from support.middle import Middle

N = symbol("N")
X = Stored("float", (4, 5, 6), 1)


def place(*strides, element="float"):
    return Place(Located(X, 0, strides), element, strides)


def copying(sizes, read, written, reduced=None, steps=None):
    """The loops of a copy."""
    reduced = reduced or (False,) * len(sizes)
    steps = steps or [Load("float", 0)]
    return Nesting(sizes, reduced, [place(*read), place(*written)], steps, [(1, len(steps) - 1)])


# ---------------------------------------------------------------- axes


def test_axes_merge_that_all_places_cross_as_one():
    found = merged(copying((4, 5, 6), (30, 6, 1), (30, 6, 1)))
    assert found.sizes == (120,)
    assert [p.strides for p in found.places] == [(1,), (1,)]
    apart = merged(copying((4, 5, 6), (60, 6, 1), (30, 6, 1)))  # there is a gap behind each image
    assert apart.sizes == (4, 30)
    assert [p.strides for p in apart.places] == [(60, 1), (30, 1)]


def test_axes_of_size_1_go():
    assert merged(copying((1, 4, 1), (0, 1, 0), (4, 1, 1))).sizes == (4,)
    assert merged(copying((4, 1), (1, 0), (1, 1)), fixed=1).sizes == (4, 1)


def test_folded_axes_merge_with_each_other_only():
    steps = [Load("float", 0), Fold("float", "sum", 0)]
    found = merged(copying((4, 5, 6), (30, 6, 1), (1, 0, 0), (False, True, True), steps))
    assert (found.sizes, found.reduced) == ((4, 30), (False, True))


def test_symbolic_sizes_merge():
    found = merged(copying((N, 6), (6, 1), (6, 1)))
    assert found.sizes == (6 * N,)


def test_an_axis_whose_index_is_read_stays():
    steps = [Position("int64", 1)]
    found = merged(Nesting((1, 4, 5), (False,) * 3, [place(20, 5, 1)], steps, [(0, 0)]))
    assert found.sizes == (4, 5)
    assert found.steps == [Position("int64", 0)]


def test_vectors_lie_where_most_places_advance():
    nest = nest_of(copying((40, 50), (1, 40), (50, 1)), 256, HEURISTICS)
    assert nest.inner == 1  # a store counts twice
    assert nest.lanes == 8
    assert nest_of(copying((40, 50), (1, 40), (1, 40)), 256, HEURISTICS).inner == 0
    assert nest_of(copying((40, 50), (1, 40), (50, 1)), 512, HEURISTICS, inner=0).inner == 0


def test_lanes_follow_from_the_widest_element_that_varies():
    steps = [Load("float", 0), Apply("double", "cast", (0,))]
    nesting = Nesting((40,), (False,), [place(1), place(1, element="double")], steps, [(1, 1)])
    assert nest_of(nesting, 256, HEURISTICS).lanes == 4
    constant = [
        Load("float", 0),
        ConstantStep("double", 2.0),
        Apply("float", "cast", (1,)),
        Apply("float", "add", (0, 2)),
    ]
    once = Nesting((40,), (False,), [place(1), place(1)], constant, [(1, 3)])
    assert nest_of(once, 256, HEURISTICS).lanes == 8  # the double is computed before the loops
    small = Nesting(
        (40,), (False,), [place(1, element="int8"), place(1, element="int8")], [Load("int8", 0)], [(1, 0)]
    )
    assert nest_of(small, 256, HEURISTICS).lanes == 8  # no more than of 32 bits


def test_vectors_lie_beside_short_folds():
    steps = [Load("float", 0), Fold("float", "sum", 0)]
    short = copying((40, 16), (16, 1), (1, 0), (False, True), steps)
    long = copying((40, 17), (17, 1), (1, 0), (False, True), steps)
    assert (nest_of(short, 256, HEURISTICS).inner, nest_of(long, 256, HEURISTICS).inner) == (0, 1)


def test_one_short_fold_is_computed_as_many_are():
    steps = [Load("float", 0), Fold("float", "sum", 0)]
    one = copying((4,), (1,), (0,), (True,), steps)
    beside = beside_one(one, HEURISTICS)
    assert (beside.sizes, beside.reduced) == ((1, 4), (False, True))
    assert [p.strides for p in beside.places] == [(1, 1), (1, 0)]
    long = copying((40,), (1,), (0,), (True,), steps)
    assert beside_one(long, HEURISTICS) is long


def test_elements_that_are_stored_several_times():
    nest = nest_of(copying((30, 2), (1, 0), (2, 1)), 256, HEURISTICS)
    assert (nest.inner, nest.repeats) == (0, (1, 2))
    assert not nest_of(copying((30, 20), (1, 0), (20, 1)), 256, HEURISTICS).repeats  # too often


# ---------------------------------------------------------------- groups


def nesting(text, name, **sizes):
    middle = Middle(text, **sizes)
    group = middle.group(name)
    return middle, nesting_of(group, middle.grouping)


def test_the_steps_of_a_group():
    text = "g (float[N,8] x, float[8] b) => (float[N,8] y) { s = Add (x, b) y = Relu (s) }"
    _, found = nesting(text, "y", N=3)
    assert [p.strides for p in found.places] == [(8, 1), (0, 1), (8, 1)]
    assert [str(s) for s in found.steps] == ["load a0", "load a1", "add %0, %1", "float 0", "max %2, %3"]
    assert found.stores == [(2, 4)]


def test_equal_steps_are_one():
    _, found = nesting("g (float[N] x) => (float[N] y) { e = Exp (x) f = Exp (x) y = Mul (e, f) }", "y", N=3)
    assert [str(s) for s in found.steps] == ["load a0", "exp %0", "mul %1, %1"]


def test_indices_bound_the_axis_that_they_choose_from():
    middle, found = nesting(
        "g (float[V,8] t, int64[N] i) => (float[N,8] y) { y = Gather (t, i) }", "y", V=9, N=3
    )
    assert found.takes == [(symbol("V"), 32)]
    take = next(s for s in found.steps if isinstance(s, TakeStep))
    assert found.places[take.access].strides == (0, 1)
    reaches = reaches_of(found, middle.builder.buffer)
    assert [r.takes for r in reaches] == [[(symbol("V"), 32)] if n == take.access else () for n in range(3)]


def test_sizes_of_runs_are_arguments():
    text = "g (float[4,N] x) => (float[4,1] y) <int64[1] axes = {1}> { y = ReduceMean (x, axes) }"
    _, found = nesting(text, "y", N=30)
    assert found.arguments == [N]
    assert any(isinstance(s, SizeArgument) for s in found.steps)


# ---------------------------------------------------------------- entries


def entry_of(text, name, **sizes):
    middle, found = nesting(text, name, **sizes)
    return middle, nest_entry(middle.builder, middle.group(name), found)


def test_the_entry_of_a_softmax():
    middle, entry = entry_of("g (float[N,300] x) => (float[N,300] y) { y = Softmax (x) }", "y", N=3)
    assert entry.scratch == 300 * 4 + 128  # the exponentials of a row
    assert entry.flops == 6 * 300 * N
    assert entry.nodes == ("Softmax with output 'y'",)
    assert entry.writes == [middle.builder.buffer(middle["y"])]
    ((_, _, nest, block),) = entry.choices
    assert block[slice(*entry.loops)] == [N, 300] == nest.signature.read(block, "sizes")
    assert nest.signature.read(block, "scratch", "bytes") == [entry.scratch]


def test_an_entry_with_indices_is_run_for_empty_results_too():
    """An index outside of the axis is an error, even where nothing is taken."""
    _, entry = entry_of("g (float[V,8] t, int64[N] i) => (float[N,8] y) { y = Gather (t, i) }", "y", V=9, N=3)
    assert entry.writes == []
    assert entry.loops == (0, 0)


def test_folds_beside_vectors_need_no_scratch_memory():
    text = "g (float[40,N] x) => (float[1,N] y) <int64[1] axes = {0}> { y = ReduceSum (x, axes) }"
    _, found = nesting(text, "y", N=50)
    found = merged(found)
    assert scratch_of(nest_of(found, 256, HEURISTICS), found) == 0


def test_what_the_limits_count_of_a_plan():
    middle = Middle("g (float[N,8] x) => (double[N,8] y) { e = Exp (x) y = Cast <to = 11> (e) }", N=3)
    assert values_of(middle.lowered) == [ComputedTensor((N, 8), 4), ComputedTensor((N, 8), 8)]


@pytest.mark.parametrize("kind", ["input", "output"])
def test_reaches_count_elements(kind):
    buffer = Buffer(kind, 3, "float", (4, 6), 96)
    nesting = copying((4, 6), (6, 1), (1, 4))
    first, second = reaches_of(nesting, lambda _: buffer)
    assert (first.buffer, first.width, first.offset, first.extents) == (buffer, 4, 0, [(4, 6), (6, 1)])
    assert second.extents == [(4, 1), (6, 4)]
