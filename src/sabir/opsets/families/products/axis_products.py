"""Products of a tensor with a matrix along one axis, in the graph of a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.opsets.families.indexing.move_gradients import zeros_of

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.typing import Gradient


def identity_of(g: Gradient, x: Value, axis: int) -> Value:
    """Return the identity matrix of the size of an axis, counted from the front, of the type of `x`."""
    size = g.Shape(x, start=axis, end=axis + 1)
    return g.EyeLike(zeros_of(g, g.Concat(size, size, axis=0), x))


def along(g: Gradient, x: Value, axis: int, matrix: Value) -> Value:
    """Return the product of an axis (..., n, ...) with a matrix (m, n): (..., m, ...)."""
    last = g.rank(x) - 1
    if axis == last - 1:
        return g.MatMul(matrix, x)
    order = list(range(last + 1))
    order[axis], order[last] = last, axis
    moved = x if axis == last else g.Transpose(x, perm=order)
    y = g.MatMul(moved, g.Transpose(matrix, perm=[1, 0]))
    return y if axis == last else g.Transpose(y, perm=order)
