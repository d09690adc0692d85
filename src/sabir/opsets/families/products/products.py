"""Matrix products: their shapes, and their evaluation in the element type of the operands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError, new_array, spend_work
from sabir.opsets.families.shapes.shapes import broadcast, same_dim

if TYPE_CHECKING:
    from sabir.ir import Shape, Value
    from sabir.opsets.typing import Array, Gradient

MATRIX = 2  # the rank of a matrix
_LARGE = 4096  # multiplications; below it numpy's integer loop costs less than a pass over the values
_HEAVY = 1 << 26  # a product of the operands' sizes; smaller work is not counted
_PRODUCTS = 128  # multiplications of one-byte numbers in the time that numpy needs to write a byte
_FLOAT = 4  # bytes of the narrowest type of BLAS
_SOME_ROWS = range(8, 65)  # for which a transposed second operand is better the first one
_EXACT = float(2**53)  # up to here integers are exact in float64


def matmul_shape(a: Shape | None, b: Shape | None) -> Shape | None:
    """Return the shape of `a @ b`: stacks broadcast, and a 1-D operand's added dimension is dropped again."""
    if a == () or b == ():
        raise InferenceError("a matrix product takes no scalars")
    if not a or not b:
        return None
    same_dim([a[-1], b[-2:][0]], "the inner dimensions of a matrix product")
    columns = b[-1:] if len(b) > 1 else ()
    return (*(broadcast(a[:-2], b[:-2]) or ()), *a[-2:-1], *columns)


def matmul(a: Array, b: Array) -> Array:
    """Return `a @ b` in the operands' type: halves accumulate in float32, integers wrap."""
    _spend(a, b, _PRODUCTS // max(a.itemsize, _FLOAT))
    if a.dtype.kind in "iu":
        return _integer_matmul(a, b)
    if a.itemsize < _FLOAT:
        return np.asarray(matmul(a.astype(np.float32), b.astype(np.float32))).astype(a.dtype)
    if a.ndim > b.ndim == 2:  # ruff: ignore[magic-value-comparison] - a stack times one matrix: one call of BLAS instead of many
        rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        return _float_matmul(rows, b).reshape(*a.shape[:-1], b.shape[1])
    return _float_matmul(a, b)


def _float_matmul(a: Array, b: Array) -> Array:
    """Return `a @ b`; for some rows and a transposed `b`, the transpose of `b.T @ a.T`.

    BLAS reorders both operands, and a transposed second one slowly: with 16 rows this takes half the time. A
    few rows need no reordering, and for many it costs little beside the multiplications.
    """
    some = a.ndim == b.ndim == MATRIX and len(a) in _SOME_ROWS and len(a) <= len(b)
    if some and b.strides[0] == b.itemsize < b.strides[1]:
        return np.ascontiguousarray(np.matmul(b.T, a.T).T)
    if a.shape[:-2] != b.shape[:-2] or min(a.ndim, b.ndim) < MATRIX or a.dtype != b.dtype:
        return np.matmul(a, b)
    return np.matmul(a, b, out=new_array((*a.shape[:-1], b.shape[-1]), a.dtype))


def _integer_matmul(a: Array, b: Array) -> Array:
    """Use BLAS in float64 where all partial sums are exact; numpy's integer product is a plain loop."""
    if b.size and a.size * b.shape[-1] > _LARGE and _largest(a) * _largest(b) * a.shape[-1] <= _EXACT:
        y = matmul(a.astype(np.float64), b.astype(np.float64))
        return y.astype(np.int64).astype(a.dtype)  # wraps, as floats out of range do not
    _spend(a, b, 1)
    return np.matmul(a, b)


def _spend(a: Array, b: Array, speed: int) -> None:
    """Count multiplications as work: `speed` of them as one byte."""
    if a.ndim and b.ndim and a.size * b.size > _HEAVY:
        rows, columns = (a.shape[-2] if a.ndim > 1 else 1), (b.shape[-1] if b.ndim > 1 else 1)
        spend_work(max(a.size * columns, b.size * rows) // speed)


def _largest(x: Array) -> float:
    return max(float(x.max()), -float(x.min()))


def matmul_gradient(g: Gradient, a: Value, b: Value) -> tuple[Value, Value]:
    """Return the gradients of a matrix product; vectors take part as matrices of one row or column."""
    rows, columns, dy = g.rank(a) > 1, g.rank(b) > 1, g.dy
    left, right = a if rows else g.Unsqueeze(a, [0]), b if columns else g.Unsqueeze(b, [1])
    dy = dy if columns else g.Unsqueeze(dy, [-1])
    dy = dy if rows else g.Unsqueeze(dy, [-2])
    da = g.MatMul(dy, _transposed(g, right))
    if g.rank(a) > g.rank(right) == MATRIX:  # a stack times one matrix: no stack of gradients
        db = _of_weights(g, g.Flatten(left, axis=-1), g.Flatten(dy, axis=-1))
    else:
        db = g.MatMul(_transposed(g, left), dy)
    da, db = da if rows else g.Squeeze(da, [-2]), db if columns else g.Squeeze(db, [-1])
    if g.rank(b) <= MATRIX:  # no batch repeats `a`, and the product of flattened stacks has summed over it
        return da, db
    return g.fit(da, a), db if g.rank(a) <= MATRIX else g.fit(db, b)


def _of_weights(g: Gradient, a: Value, dy: Value) -> Value:
    """Return the gradient of weights: the narrower operand is transposed."""
    shapes = g.shape(a), g.shape(dy)
    sizes = [s[-1] for s in shapes if s is not None and isinstance(s[-1], int)]
    if sizes[:1] > sizes[1:] and len(sizes) == len(shapes):
        return _transposed(g, g.MatMul(_transposed(g, dy), a))
    return g.MatMul(_transposed(g, a), dy)


def _transposed(g: Gradient, x: Value) -> Value:
    rank = g.rank(x)
    return g.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])
