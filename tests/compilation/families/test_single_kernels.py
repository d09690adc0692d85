"""Kernels of one expression, alone: running sums, selections, updates at indices, probabilities of pairs, heaps."""

import ctypes

import numpy as np
import pytest

from sabir.compilation.backends.cpu.emit.emitter import INDEX, Emitter
from sabir.compilation.backends.cpu.emit.nest import ANY, NEXT, STILL, Access, Apply, Load, Nest, TakeStep
from sabir.compilation.backends.cpu.emit.sort_keys import record_bytes
from sabir.compilation.backends.cpu.singles.coupling import Coupling, coupled_vectors
from sabir.compilation.backends.cpu.singles.cumulation import Cumulation
from sabir.compilation.backends.cpu.singles.heaps import Heap
from sabir.compilation.backends.cpu.singles.scattering import Scattering
from sabir.compilation.backends.cpu.singles.selection import Selection
from sabir.compilation.native import Library, host
from support.kernels import nest_values, run_kernel

ROWS = Access("float", (ANY, NEXT))
COPY = (Load("float", 0),)
RANDOM = np.random.default_rng(3)


def integers(*shape):
    """Small integers as floats: their sums are exact in any order."""
    return RANDOM.integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_running_sums(axis, exclusive, reverse):
    nest = Nest(2, (axis == 0, axis == 1), 1, (ROWS, ROWS), COPY, ((1, 0),), lanes=8)
    x, y = integers(7, 37), np.zeros((7, 37), np.float32)
    values = {"nest": nest_values([7, 37], (x, [148]), (y, [148]))}
    run_kernel(Cumulation(nest, "sum", exclusive, reverse), values, shares=2)
    turned = np.flip(x, axis) if reverse else x
    expected = np.cumsum(turned, axis) - (turned if exclusive else 0)
    np.testing.assert_array_equal(y, np.flip(expected, axis) if reverse else expected)


def test_running_products():
    nest = Nest(1, (True,), 0, (Access("float", (NEXT,)),) * 2, COPY, ((1, 0),), lanes=8)
    x, y = np.float32([2, 3, 4, 5]), np.zeros(4, np.float32)
    run_kernel(Cumulation(nest, "prod", exclusive=True, reverse=False), {"nest": nest_values([4], x, y)})
    np.testing.assert_array_equal(y, [1, 2, 6, 24])


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("count", [0, 1, 5, 40])
def test_selections(count, largest):
    nest = Nest(2, (False, True), 1, (ROWS, Access("int64", (ANY, NEXT))), COPY, ((1, 0),), lanes=8)
    x, y = integers(3, 40), np.zeros((3, max(1, count)), np.int64)  # many are equal
    scratch = count * record_bytes("float") + 8
    values = nest_values([3, 40], (x, [160]), (y, [8 * max(1, count)]), scratch=scratch)
    assert run_kernel(Selection(nest, largest), {"nest": values, "count": count}, scratch=scratch) == 0
    order = np.argsort(-x if largest else x, axis=1, kind="stable")
    np.testing.assert_array_equal(y[:, :count], order[:, :count])


def test_more_than_there_are_cannot_be_selected():
    nest = Nest(1, (True,), 0, (Access("float", (NEXT,)), Access("int64", (NEXT,))), COPY, ((1, 0),), lanes=8)
    values = {"nest": nest_values([4], integers(4), np.zeros(5, np.int64), scratch=64), "count": 5}
    assert run_kernel(Selection(nest, largest=True), values, scratch=64) == 1


def test_the_bytes_of_records():
    assert [record_bytes(e) for e in ("int8", "float", "double")] == [8, 8, 16]


def scattering(checks, op="add"):
    """Updates of a vector at indices, combined with what is there."""
    accesses = (Access("int64", (NEXT,)), Access("float", (NEXT,)), Access("float", (STILL,)))
    steps = (Load("int64", 0), Load("float", 1), TakeStep("float", 2, 0), Apply("float", op, (2, 1)))
    return Scattering(Nest(1, (True,), 0, accesses, steps, ((2, 3),), lanes=8), checks)


def updates(at, x, y, **more):
    values = nest_values([len(at)], np.array(at), x, y, take2={"size": len(y), "stride": 4})
    return {"nest": values, **more}


def test_updates_of_one_element_follow_each_other():
    x, y = np.float32([1, 2, 4, 8]), np.zeros(3, np.float32)
    assert run_kernel(scattering(0), updates([1, 1, -1, 1], x, y)) == 0
    np.testing.assert_array_equal(y, [0, 11, 4])


def test_an_update_outside_of_the_axis_is_an_error():
    y = np.zeros(3, np.float32)
    assert run_kernel(scattering(0), updates([0, 3], np.float32([1, 2]), y)) == 1
    np.testing.assert_array_equal(y, [1, 0, 0])  # what is inside is written; the run fails


@pytest.mark.parametrize(("count", "errors"), [(5, 0), (6, 1)])
def test_more_updates_than_fit_are_an_error_and_write_nothing(count, errors):
    spec, y = scattering(2), np.zeros(3, np.float32)
    assert spec.check_names == ["check0", "check1"]
    checks = {"check0": {"updates": 1, "size": 1}, "check1": {"updates": count, "size": 5}}
    assert run_kernel(spec, updates([0], np.float32([1]), y, **checks)) == errors
    np.testing.assert_array_equal(y, [1 - errors, 0, 0])


def test_probabilities_of_two_classes_are_those_of_the_pair():
    nest = Nest(
        2, (False, True), 0, (Access("double", (ANY, NEXT)),) * 2, (Load("double", 0),), ((1, 0),), lanes=4
    )
    pairs = np.array([[0.25, 0.75], [0.5, 0.5], [0.9, 0.1]])
    y, scratch = np.zeros((3, 2)), coupled_vectors(2) * 32
    values = nest_values([3, 2], (pairs, [16]), (y, [16]), scratch=scratch)
    run_kernel(Coupling(nest, 100, 0.005), {"nest": values, "classes": 2}, scratch=scratch)
    np.testing.assert_allclose(y, pairs, atol=0.01)
    np.testing.assert_allclose(y.sum(1), 1)


# ---------------------------------------------------------------- heaps


def on_heap(items, emit):
    """Let emitted operations change integers as a heap, of which the argument is the number."""
    e = Emitter()
    heap = Heap(e, e.argument(1, "ptr"), INDEX, e.argument(0))
    emit(heap)
    found = np.array(items, np.int64)
    block = np.array([len(items), found.ctypes.data], np.int64)
    library = Library.load([e.text()], host())
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3)(library.addresses[0])(
        block.ctypes.data, None, 0, 1, 0
    )
    return found


@pytest.mark.parametrize("items", [[5], [1, 2], [3, 1, 2], [*range(20)], [*RANDOM.integers(-99, 99, 33)]])
def test_heaps(items):
    built = on_heap(items, lambda heap: heap.build())
    below = [(built[(n - 1) // 2], built[n]) for n in range(1, len(items))]
    assert all(parent >= child for parent, child in below)
    assert sorted(built) == sorted(items)

    def sort(heap):
        heap.build()
        heap.sort()

    np.testing.assert_array_equal(on_heap(items, sort), sorted(items))


def test_an_item_sinks_to_its_place():
    def exchange(heap):
        heap.sink(heap.e.index(4), heap.e.index(0), heap.size)

    assert on_heap([9, 8, 3, 7, 1], exchange).tolist() == [8, 7, 3, 4, 1]
