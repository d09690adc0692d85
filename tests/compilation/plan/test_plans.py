"""Plans as data: the labels of entries, what runs need, blocks for sizes, updates in place, what kernels read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sabir.compilation.backends.cpu.building import build
from sabir.compilation.backends.cpu.heuristics import HEURISTICS
from sabir.compilation.backends.cpu.in_place import updates_last
from sabir.compilation.fusion.origins import Origins
from sabir.compilation.inspect.explaining import explain, kind_of, spec_text
from sabir.compilation.inspect.profiling import NodeTime, Profile, Timing, _traffic
from sabir.compilation.native import target_named
from sabir.compilation.plan.bands import BANDS, CALLS
from sabir.compilation.plan.entries import ARENA, FIRST, Entry
from sabir.compilation.plan.executable import executable_of
from sabir.compilation.plan.layout import RunSizes, lay_out, plan_parts
from sabir.compilation.plan.signature import words_of
from sabir.loops import Stored
from support.golden import read
from support.middle import CORES, HEADER, Middle

GOLDEN = Path(__file__).parents[1] / "families" / "golden"


# ---------------------------------------------------------------- origins


def test_an_entry_is_labelled_by_the_calls_that_it_computes():
    middle = Middle("g (float[N] x) => (float[N] y) { e = Exp (x) y = Neg (e) }", N=3)
    origins = Origins(middle.lowered)
    assert origins.labels([middle["y"], middle["e"]]) == ("Exp with output 'e'", "Neg with output 'y'")
    assert origins.made(1) == [middle["y"]]
    assert origins.made(7) == []


def test_a_copy_belongs_to_what_needs_it():
    middle = Middle("g (float[N] x) => (float[N] y) { y = Identity (x) }", N=3)
    (group,) = middle.grouping.groups
    assert Origins(middle.lowered).labels(group.members) == ("a copy of 'x'",)


# ---------------------------------------------------------------- what runs need


def test_what_the_runs_of_a_plan_need():
    text = "g (float[N,2] x) => (float[N,2] y, int64[1] s) <float[2] b = {1, 2}> { y = Add (x, b) s = Shape <end = 1> (x) }"
    middle = Middle(text, N=3)
    plan = middle.plan()
    found = executable_of(middle.lowered.settled(), plan, frozenset({"N"}))
    assert found.plan is plan
    assert [middle.names[n] for n in "x"] == list(found.inputs)
    assert [middle.names[n] for n in "ys"] == list(found.results)
    assert [a.tolist() for a in found.constants.values()] == [[1, 2]]
    assert found.slots > max(found.results)


# ---------------------------------------------------------------- blocks


def laid_out(plan, **symbols):
    """The layout of the first part of a plan, with the number 1000 + n as the address of kernel n."""
    specs = dict.fromkeys(s for e in plan.entries if isinstance(e, Entry) for s in e.specs())
    addresses = {spec: 1000 + n for n, spec in enumerate(specs)}
    (part,) = plan_parts(plan, frozenset(symbols))
    return lay_out(plan, part, RunSizes(symbols), addresses, {}, 2), addresses


def test_a_block_has_the_sizes_of_the_run():
    middle = Middle("g (float[N,8] x, float[8] b) => (float[N,8] y) { y = Add (x, b) }", N=3)
    plan = middle.plan()
    layout, _ = laid_out(plan, N=5)
    ((_, _, nest, _),) = plan.entries[0].choices
    block = layout.blocks.tolist()
    assert nest.signature.read(block, "sizes") == [5, 8]
    assert nest.signature.read(block, "a0", "strides") == [32]


def test_loops_over_empty_tensors_do_not_turn():
    middle = Middle(
        "g (float[N,M] x) => (float[N,M] y) { t = Transpose <perm = [1, 0]> (x) y = Transpose <perm = [1, 0]> (t) }",
        N=3,
        M=4,
    )
    plan = middle.plan()
    (entry,) = plan.entries
    layout, _ = laid_out(plan, N=1 << 40, M=0)
    first, end = entry.loops
    assert layout.blocks.tolist()[first:end] == [0] * (end - first)


def banded():
    """The entry of a chain in bands, its block, and the addresses of kernels."""
    middle = Middle.of(read(GOLDEN / "bands" / "inverted-residual.txt").model(), N=2)
    plan = middle.plan()
    layout, addresses = laid_out(plan, N=3)
    place = next(n for n, e in enumerate(plan.entries) if isinstance(e, Entry) and e.bands is not None)
    row = layout.owners.tolist().index(place)
    start = (layout.rows[row, 1] - layout.blocks.ctypes.data) // 8
    return plan.entries[place], layout.blocks.tolist()[start:], addresses


def test_the_block_of_bands_has_the_moves_of_tensors():
    entry, block, _ = banded()
    assert BANDS.read(block, "items") == [3]
    assert BANDS.read(block, "bands") == [entry.bands.count]
    assert BANDS.read(block, "own_bytes") == [sum(entry.bands.own.values())]
    assert BANDS.read(block, "tensor_count") == [len(entry.buffers)]
    width = words_of(BANDS.find("tensors")[1])
    tensors = [block[BANDS.words + width * n :][:width] for n in range(len(entry.buffers))]
    assert [tuple(t[1:]) for t in tensors] == [entry.bands.moves.get(b, (0, 0)) for b in entry.buffers]


def test_the_block_of_bands_calls_kernels_with_blocks_of_their_own():
    entry, block, addresses = banded()
    first: Any
    for sizes, first in zip(entry.bands.variants, BANDS.read(block, "lists"), strict=True):
        found = RunSizes({"N": 3, **sizes})
        parts = [part.entry.choices[-1] for part in entry.bands.parts if found(part.rows) > 0]
        (count,) = CALLS.read(block[first:], "count")
        assert count == len(parts)
        for number, (*_, spec, arguments) in enumerate(parts):
            start = first + 1 + 2 * number
            kernel, at = block[start : start + 2]
            assert kernel == addresses[spec]
            path = ("nest",) if hasattr(spec, "nest") else ()
            wanted = spec.signature.read(arguments, *path, "sizes")
            assert spec.signature.read(block[at:], *path, "sizes") == [found(n) for n in wanted]
            tensor = spec.signature.read(block[at:], *path, "a0", "tensor")
            assert tensor[0] == ARENA or FIRST <= tensor[0] < FIRST + len(entry.buffers)


# ---------------------------------------------------------------- updates in place

UPDATE = """g (float[4,6] w, float[4,6] m, float[4,6] g) => (float[4,6] w1, float[4,6] m1) <float rate = {0.1}> {
  decay = Mul (m, rate)
  m1 = Add (decay, g)
  step = Mul (m1, rate)
  w1 = Sub (w, step)
}"""


def updated(text, pairs):
    middle = Middle(text)
    plan = middle.plan()
    slots = middle.names
    updates_last(plan, {slots[new]: slots[old] for new, old in pairs.items()})
    names = {slot: name for name, slot in slots.items()}
    return plan, {names[new]: names[old] for new, old in plan.in_place.items()}


def test_an_optimizer_writes_over_what_it_reads():
    plan, found = updated(UPDATE, {"w1": "w", "m1": "m"})
    assert found == {"w1": "w", "m1": "m"}
    assert plan.updating == len(plan.entries) - 1


def test_a_result_is_not_written_over_what_is_read_in_another_order():
    text = "g (float[4,4] w) => (float[4,4] w1) { t = Transpose (w) w1 = Sub (w, t) }"
    assert updated(text, {"w1": "w"})[1] == {}


def test_a_result_is_not_written_over_what_a_later_store_reads():
    text = "g (float[4] a, float[4] b) => (float[4] a1, float[4] b1) { a1 = Neg (b) b1 = Exp (a) }"
    assert updated(text, {"a1": "a", "b1": "b"})[1] == {}


def test_a_result_of_another_type_is_not_written_over_an_input():
    text = "g (float[4] w) => (double[4] w1) { w1 = Cast <to = 11> (w) }"
    assert updated(text, {"w1": "w"})[1] == {}


def test_folds_are_not_written_over_what_they_read():
    text = "g (float[4] w) => (float[4] w1) { w1 = Softmax (w) }"
    assert updated(text, {"w1": "w"})[1] == {}


def test_what_updates_comes_last():
    text = """g (float[4,6] w, float[6,3] v) => (float[4,6] w1, float[4,3] y) {
      w1 = Neg (w)
      y = MatMul (w, v)
    }"""
    plan, found = updated(text, {"w1": "w"})
    assert found == {"w1": "w"}
    assert [e.nodes for e in plan.entries] == [("MatMul with output 'y'",), ("Neg with output 'w1'",)]
    assert plan.updating == 1


# ---------------------------------------------------------------- explanations and profiles


def test_the_kernels_of_a_plan_are_explained():
    middle = Middle(
        "g (float[N,4] x) => (float[K,N] y, float[N,4] z) { f = Unique <axis = 1> (x) y = Transpose (f) z = Relu (x) }",
        N=3,
    )
    found = explain(middle.prepared, middle.plan(), ())
    assert {k.nodes for k in found.kernels} == {("Transpose with output 'y'",), ("Relu with output 'z'",)}
    assert [c.node for c in found.evaluated] == ["Unique with output 'f'"]
    assert found.without_work == ()
    assert found.nodes == 3


def test_variants_have_the_sizes_that_they_are_for():
    middle = Middle("g (float[N,64] x, float[64,48] w) => (float[N,48] y) { y = MatMul (x, w) }", N=30)
    entry = middle.plan().entries[-1]
    assert kind_of(entry) == "product"
    lines = spec_text(entry).split("\n")
    assert [line for line in lines if line.startswith(("if ", "else"))] == ["if N <= 1", "if N <= 4", "else"]


@pytest.mark.parametrize(
    ("text", "sizes", "expected"),
    [
        ("g (float[N] x) => (float[N] y) { y = Relu (x) }", {"N": 5}, 40),
        # of the table three rows are taken
        (
            "g (float[V,8] t, int64[N] i) => (float[N,8] y) { y = Gather (t, i) }",
            {"V": 100, "N": 3},
            3 * 32 + 24 + 96,
        ),
        # a whole matrix that is read by all rows counts once
        ("g (float[N,8] x, float[8] b) => (float[N,8] y) { y = Add (x, b) }", {"N": 4}, 128 + 32 + 128),
        (
            "g (float[1,64] a, float[64,96] b) => (float[1,96] y) { y = MatMul (a, b) }",
            {},
            256 + 64 * 96 * 4 + 384,
        ),
    ],
)
def test_bytes_that_a_kernel_reads_and_writes(text, sizes, expected):
    (entry,) = Middle(text, **sizes).plan().entries
    assert _traffic(entry, RunSizes(sizes)) == expected


def test_a_profile_divides_the_time_of_kernels_by_node():
    timings = (
        Timing("nest", ("a", "b"), 2.0, 8, 8),
        Timing("evaluated", ("c",), 4.0, 0, 8),
        Timing("nest", ("a",), 1.0, 8, 8),
    )
    profile = Profile(timings, whole=6.0, runs=3)
    assert profile.seconds == 7
    assert profile.nodes == (NodeTime("c", 4.0, 0), NodeTime("a", 3.0, 1), NodeTime("b", 2.0, 1))
    assert [e["ts"] for e in profile.trace()] == [0, 2e6, 6e6]


# ---------------------------------------------------------------- building


def test_a_plan_is_the_same_each_time():
    text = HEADER + "g (float[N,8] x) => (float[N,8] y) { y = Softmax (x) }"
    plans = [
        build(m.request, target_named("x86-64-v3"), CORES, HEURISTICS)
        for m in (Middle(text, N=3), Middle(text, N=3))
    ]
    shown = [[(e.nodes, [str(c[2]) for c in e.choices], e.flops) for e in plan.entries] for plan in plans]
    assert shown[0] == shown[1]


def test_what_is_stored_has_a_buffer_of_its_kind():
    text = "g (float[N,2] x) => (float[N,2] y) <float[2] b = {1, 2}> { s = Softmax (x) t = Softmax <axis = 0> (s) y = Add (t, b) }"
    middle = Middle(text, N=3)
    plan = middle.plan()
    kinds = {b.kind for b in plan.buffers}
    assert kinds >= {"input", "output", "arena", "constant"}
    for buffer in plan.buffers:
        if buffer.kind == "arena":
            assert buffer.first < buffer.last
    assert middle.builder.buffer(middle["x"]) is middle.builder.by_slot[middle.names["x"]]
    assert isinstance(middle["x"], Stored)
