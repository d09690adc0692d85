"""Kernels of elementwise nests, alone: maps, folds along and beside vectors, transposes, repeats, takes, errors."""

import numpy as np
import pytest

from sabir.compilation.backends.cpu.elementwise.kernel import nest_text
from sabir.compilation.backends.cpu.elementwise.transposes import axis_of_reads, can_transpose
from sabir.compilation.backends.cpu.emit.nest import (
    ANY,
    NEXT,
    STILL,
    Access,
    Apply,
    ConstantStep,
    Fold,
    Load,
    Nest,
    Position,
    SizeArgument,
    TakeStep,
)
from sabir.compilation.backends.cpu.emit.row_passes import passes_of
from support.kernels import nest_values, run_kernel

ROWS = Access("float", (ANY, NEXT))
RANDOM = np.random.default_rng(2)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shares", [1, 3])
@pytest.mark.parametrize("columns", [1, 7, 8, 5000])
def test_a_map_with_a_broadcast_operand(columns, shares):
    steps = (Load("float", 0), Load("float", 1), Apply("float", "add", (0, 1)))
    nest = Nest(2, (False, False), 1, (ROWS, Access("float", (STILL, NEXT)), ROWS), steps, ((2, 2),), lanes=8)
    x, b, y = floats(5, columns), floats(columns), np.zeros((5, columns), np.float32)
    line = [4 * columns]
    assert run_kernel(nest, nest_values([5, columns], (x, line), b, (y, line)), shares=shares) == 0
    np.testing.assert_array_equal(y, x + b)


def test_a_position_a_constant_and_a_size():
    steps = (
        Position("int64", 0), ConstantStep("int64", 3), Apply("int64", "mul", (0, 1)), SizeArgument("int64", 0),
        Apply("int64", "add", (2, 3)),
    )  # fmt: skip
    nest = Nest(1, (False,), 0, (Access("int64", (NEXT,)),), steps, ((0, 4),), sizes=1, lanes=4)
    y = np.zeros(11, np.int64)
    run_kernel(nest, nest_values([11], y, extents=[100]))
    np.testing.assert_array_equal(y, 3 * np.arange(11) + 100)


def softmax():
    """The steps of a Softmax along the last axis of a matrix."""
    steps = (
        Load("float", 0), Fold("float", "max", 0), Apply("float", "sub", (0, 1)), Apply("float", "exp", (2,)),
        Fold("float", "sum", 3), Apply("float", "div", (3, 4)),
    )  # fmt: skip
    return Nest(2, (False, True), 1, (ROWS, ROWS), steps, ((1, 5),), lanes=8)


def test_the_passes_of_a_softmax_keep_its_exponentials():
    passes = passes_of(softmax(), keep=True)
    assert passes.roots == [[1], [4], [5]]  # the maximum, the sum, the results
    assert passes.kept == {3: 1}
    assert passes.fetched == [[], [], [3]]
    assert passes.inside(2) == [(1, 5)]
    assert passes.after() == []
    assert passes_of(softmax(), keep=False).kept == {}


@pytest.mark.parametrize("columns", [3, 8, 301])
def test_passes_over_rows(columns):
    x, y = floats(6, columns), np.zeros((6, columns), np.float32)
    line, scratch = [4 * columns], 4 * columns + 128
    values = nest_values([6, columns], (x, line), (y, line), scratch=scratch)
    run_kernel(softmax(), values, scratch=scratch, shares=2)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, exact / exact.sum(1, keepdims=True), rtol=1e-6)


def test_folds_beside_vectors():
    steps = (Load("float", 0), Fold("float", "max", 0))
    result = Access("float", (STILL, NEXT))
    nest = Nest(2, (True, False), 1, (ROWS, result), steps, ((1, 1),), lanes=8)
    x, y = floats(9, 21), np.zeros(21, np.float32)
    run_kernel(nest, nest_values([9, 21], (x, [84]), y))
    np.testing.assert_array_equal(y, x.max(0))
    assert passes_of(nest, keep=False).after() == [(1, 1)]


def transposing():
    accesses = (Access("float", (NEXT, ANY)), ROWS)
    return Nest(2, (False, False), 1, accesses, (Load("float", 0),), ((1, 0),), lanes=8)


@pytest.mark.parametrize("shape", [(8, 8), (3, 50), (70, 9)])
def test_transposes(shape):
    rows, columns = shape
    x, y = floats(columns, rows), np.zeros(shape, np.float32)
    run_kernel(transposing(), nest_values(shape, (x, [4 * rows]), (y, [4 * columns])), shares=2)
    np.testing.assert_array_equal(y, x.T)


def test_which_nests_are_transposes():
    assert axis_of_reads(transposing()) == 0
    assert can_transpose(transposing())
    assert axis_of_reads(softmax()) is None
    both = (Access("float", (NEXT, ANY)), Access("float", (ANY, NEXT)))
    plain = Nest(2, (False, False), 0, both, (Load("float", 0),), ((1, 0),), lanes=8)
    assert axis_of_reads(plain) is None  # it writes with gaps


def test_repeats_store_each_value_side_by_side():
    accesses = (Access("float", (NEXT, STILL)), Access("float", (ANY, NEXT)))
    nest = Nest(2, (False, False), 0, accesses, (Load("float", 0),), ((1, 0),), lanes=8, repeats=(1, 3))
    x, y = floats(19), np.zeros(57, np.float32)
    run_kernel(nest, nest_values([19, 3], x, (y, [12])))
    np.testing.assert_array_equal(y, x.repeat(3))


def takes(near):
    """The elements of a vector at indices."""
    index = "int32" if near else "int64"
    accesses = (Access("float", (STILL,)), Access(index, (NEXT,)), Access("float", (NEXT,)))
    steps = (Load(index, 1), TakeStep("float", 0, 0, near))
    return Nest(1, (False,), 0, accesses, steps, ((2, 1),), lanes=8)


@pytest.mark.parametrize("near", [False, True])
def test_takes_at_indices(near):
    table, y = floats(10), np.zeros(9, np.float32)
    at = np.array([0, 9, -1, -10, 3, 3, 2, 5, 7], np.int32 if near else np.int64)
    values = nest_values([9], table, at, y, take1={"size": 10, "stride": 4})
    assert run_kernel(takes(near), values) == 0
    np.testing.assert_array_equal(y, table[at])


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("outside", [10, -11])
def test_an_index_outside_of_the_axis_is_an_error_of_the_run(near, outside):
    at = np.array([0, 1, outside], np.int32 if near else np.int64)
    values = nest_values([3], floats(10), at, floats(3), take1={"size": 10, "stride": 4})
    assert run_kernel(takes(near), values) == 1


def test_equal_nests_have_equal_text():
    assert nest_text(softmax()) == nest_text(softmax())
    assert nest_text(softmax()) != nest_text(transposing())
