"""Trilu: the triangle of a matrix above or below a diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.schema import Attribute, Input

if TYPE_CHECKING:
    from sabir.loops import Expression
    from sabir.opsets.typing import Array

DIAGONAL = Input(
    "k",
    "tensor(int64)",
    "The diagonal that bounds the triangle and belongs to it: 0 the main one, above it if positive.",
    optional=True,
    differentiable=False,
)
UPPER = Attribute("upper", "int", "1: keep what is on and above the diagonal; 0: on and below.", default=1)
_MATRIX = 2


def infer(x: TensorType, k: TensorType | None = None, /, *, upper: int) -> TensorType:
    """The type of `x`; the contents of integers where they and `k` are known."""
    if x.shape is not None and len(x.shape) < _MATRIX:
        raise InferenceError(f"`input` of rank {len(x.shape)} contains no matrices")
    check_one("k", k)
    y = TensorType(x.element, x.shape)
    if not x.element.is_integer:
        return y
    diagonal = 0 if k is None else k.known[0] if k.known else None
    if not isinstance(diagonal, int):
        return y
    return contents.moved(y, lambda known: _triangle(known, diagonal, upper, 0), x)


def evaluate(x: Array, k: Array | None = None, /, *, upper: int) -> Array:
    """Return the triangles of the matrices in the last two dimensions."""
    zero = "" if x.dtype == object else x.dtype.type(0)
    return _triangle(x, 0 if k is None else int(as_number("k", k)), upper, zero)


def lower(x: Expression, k: Expression | None = None, /, *, upper: int) -> Expression:
    """Return the triangles as a tensor expression."""
    rows, columns = x.shape[-2:]
    above = loops.apply("sub", loops.count((1, columns), 1), loops.count((rows, 1), 0))
    bound = loops.number("int64", 0) if k is None else loops.reshape(k, ())
    return loops.where(loops.apply("ge" if upper else "le", above, bound), x, 0)


def _triangle(x: Array, k: int, upper: int, zero: object) -> Array:
    rows, columns = x.shape[-2:]
    k = min(max(k, -rows), columns)  # diagonals further away contain no elements
    above: Array = np.arange(columns, dtype=np.int64) - np.arange(rows, dtype=np.int64)[:, None]
    return np.where(above >= k if upper else above <= k, x, np.array(zero, x.dtype))
