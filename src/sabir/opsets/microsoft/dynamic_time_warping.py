"""DynamicTimeWarping: the cheapest path through a matrix of costs."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.families.shapes.sizes import set_aside, spend_operations
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

dynamic_time_warping = Operator(
    "DynamicTimeWarping",
    domain="com.microsoft",
    summary="The path of least cost from the first to the last element of a matrix, in steps down, right "
    "or both.",
)

F = Constraint("F", tensors("float"))
I = Constraint("I", tensors("int32"))  # ruff: ignore[ambiguous-variable-name]  the published name

v1 = dynamic_time_warping.first(
    1,
    inputs=[Input("input", F, "The cost of each point, [M, N] or [1, M, N].", differentiable=False)],
    outputs=[Output("output", I, "The rows and the columns of the points of the path, [2, x].")],
)

_BOTH, _DOWN, _RIGHT = 0, 1, 2  # the steps that lead to a point
_MATRIX, _BATCHED = 2, 3  # ranks
_STEP_BYTES = 9  # a sum and a step of each point

v1.absent("lower", "the length of the path depends on the costs")
v1.absent("gradient", "the results are integers")


@v1.infer
def infer(x: TensorType, /) -> TensorType:
    check_rank("input", x, _MATRIX, _BATCHED)
    if x.shape is not None and len(x.shape) == _BATCHED:
        check_shape("input", x, 1, None, None)
    return TensorType(element("int32"), (2, None))


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    hold(infer, x)
    costs = x.reshape(x.shape[-2:])
    if 0 in costs.shape:
        return np.zeros((2, 0), np.int32)
    steps = _steps(costs)
    row, column = costs.shape[0] - 1, costs.shape[1] - 1
    path = [(row, column)]
    while row or column:
        step = steps[row, column]
        row, column = row - (step != _RIGHT), column - (step != _DOWN)
        path.append((row, column))
    return np.array(path[::-1], np.int32).T


def _steps(costs: Array) -> Array:
    """Return the last step of the cheapest path to each point, one antidiagonal after another."""
    m, n = costs.shape
    set_aside(costs.size, _STEP_BYTES, "the sums of costs and the steps")
    spend_operations(8 * (m + n), 4 * costs.nbytes)
    sums = np.full((m + 1, n + 1), np.inf, costs.dtype)  # a row and a column before the first
    sums[0, 0] = 0
    steps = np.empty((m, n), np.int8)
    for diagonal in range(m + n - 1):
        rows = np.arange(max(0, diagonal - n + 1), min(m, diagonal + 1), dtype=np.int64)
        columns = np.subtract(diagonal, rows)
        both, down, right = sums[rows, columns], sums[rows, columns + 1], sums[rows + 1, columns]
        by_both, by_down = (both < down) & (both < right), (down < both) & (down < right)
        least = np.where(by_both, both, np.where(by_down, down, right))
        steps[rows, columns] = np.where(by_both, _BOTH, np.where(by_down, _DOWN, _RIGHT))
        sums[rows + 1, columns + 1] = costs[rows, columns] + least
    return steps


@dynamic_time_warping.examples
def examples() -> Iterator[Example]:
    f = np.float32
    costs = np.array([[1, 5, 9], [2, 1, 7], [8, 3, 1]], f)
    yield Example(1, costs, expect=[[[0, 1, 2], [0, 1, 2]]])
    yield Example(1, costs[None], expect=[[[0, 1, 2], [0, 1, 2]]])
    flat = np.array([[1, 1, 1, 1], [9, 9, 9, 1]], f)
    yield Example(1, flat, expect=[[[0, 0, 0, 1], [0, 1, 2, 3]]])
    yield Example(1, flat.T, expect=[[[0, 1, 2, 3], [0, 0, 0, 1]]])
    for shape in ((2, 3), (4, 2), (1, 1), (1, 4), (3, 1)):
        yield Example(1, np.zeros(shape, f))
    yield Example(1, np.ones((3, 3), f))
    yield Example(1, -np.ones((4, 3), f))
    yield Example(1, np.random.default_rng(1).random((7, 12), f))
    yield Example(1, np.zeros((0, 3), f))
