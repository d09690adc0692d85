"""Indices that count from either end, and slices, of numbers and of symbolic dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError
from sabir.ir import (
    Expr,
    add,
    ceil_div,
    dim_max,
    dim_min,
    is_nonnegative,
    lower_bound,
    may_be_at_most,
    sub,
    upper_bound,
)
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.schema import Attribute, Input, tensors

if TYPE_CHECKING:
    from sabir.ir import Dim, Item, Known, Shape
    from sabir.opsets.typing import Array

INDEX_TYPES = tensors("int32", "int64")
TUPLES = Input(
    "indices",
    "tensor(int64)",
    "Tuples along the last dimension, each of indices into the first axes of `data`; -1 is the last.",
    differentiable=False,
)
AXIS = Attribute("axis", "int", "The dimension to index, counted from the back if negative.", default=0)

# The standard recommends INT_MAX and INT_MIN for "to the end" of a dimension of unknown size.
TO_THE_END = 2**31 - 1


def check_index_shape(data: Shape, indices: Shape, axis: int) -> None:
    """Raise InferenceError unless `indices` has the rank of `data`, and larger sizes only along `axis`."""
    if len(indices) != len(data):
        raise InferenceError(f"`data` has rank {len(data)}, `indices` {len(indices)}; they must be equal")
    axis = axis_in(axis, len(data))
    for place, (size, wanted) in enumerate(zip(data, indices, strict=True)):
        if place != axis and not may_be_at_most(wanted, size):
            raise InferenceError(f"`indices` has size {wanted} along axis {place}, and `data` {size}")


def checked(indices: Array, size: int) -> Array:
    """Return indices counted from the front; raises IndexError for one outside [-size, size-1]."""
    outside = (indices < -size) | (indices >= size)
    if outside.any():
        raise IndexError(f"index {indices[outside][0]} is outside [{-size}, {size - 1}]")
    return np.where(indices < 0, indices + size, indices)


def check_known(indices: Known | None, dim: Dim) -> None:
    """Raise InferenceError for a known index that is outside a dimension of known size."""
    for index in indices or ():
        if isinstance(index, int) and isinstance(dim, int) and not -dim <= index < dim:
            raise InferenceError(f"index {index} is outside [{-dim}, {dim - 1}]")


class Span(NamedTuple):
    """A slice of one axis; `end` is -1 where a backward slice includes index 0."""

    start: int
    end: int
    step: int

    def __len__(self) -> int:
        return len(range(self.start, self.end, self.step))

    @property
    def slice(self) -> slice:
        """The Python slice, where None replaces an `end` of -1."""
        return slice(self.start, self.end if self.end >= 0 else None, self.step) if len(self) else slice(0)


def span(start: int, end: int, step: int, size: int) -> Span:
    """Clamp a slice to a dimension as the standard says; numpy clamps a backward start differently."""
    if step == 0:
        raise InferenceError("a slice cannot have a step of 0")
    start, end = (v + size if v < 0 else v for v in (start, end))
    if step > 0:
        return Span(min(max(start, 0), size), min(max(end, 0), size), min(step, size + 1))
    return Span(min(max(start, 0), size - 1), min(max(end, -1), size - 1), max(step, -size - 1))


def sliced_dim(start: Item, end: Item, step: Item, dim: Dim) -> Dim:
    """Return the size of a dimension after slicing; None where it is unknown."""
    if not isinstance(step, int) or not isinstance(start, (int, Expr)) or not isinstance(end, (int, Expr)):
        return None
    if isinstance(start, int) and isinstance(end, int) and isinstance(dim, int):
        return len(span(start, end, step, dim))
    if step == 0:
        raise InferenceError("a slice cannot have a step of 0")
    return _forward(start, end, step, dim) if step > 0 else _backward(start, end, step, dim)


def sliced_start(start: Item, step: int, dim: Dim) -> Dim:
    """Return the first index of a slice, clamped to the dimension; None where it is unknown."""
    if not isinstance(start, (int, Expr)):
        return None
    last = sub(dim, 1)
    if step < 0 and isinstance(start, int) and start >= TO_THE_END:
        return dim_max(0, last)
    first = _from_front(start, dim)
    return dim_min(dim_max(0, first), dim) if step > 0 else dim_max(0, dim_min(first, last))


def _forward(start: int | Expr, end: int | Expr, step: int, dim: Dim) -> Dim:
    """max(0, ceil((min(end, dim) - max(0, start)) / step)), without the clamps that have no effect."""
    first = _from_front(start, dim)
    last = dim if isinstance(end, int) and end >= TO_THE_END else dim_min(_from_front(end, dim), dim)
    length = sub(last, first)
    if not is_nonnegative(first):
        length = dim_min(last, length)  # last - max(0, first)
    return dim_max(0, ceil_div(length, step))


def _backward(start: int | Expr, end: int | Expr, step: int, dim: Dim) -> Dim:
    """max(0, ceil((start - max(-1, end)) / -step)) from a start within the dimension."""
    first, back = _from_front(start, dim), sub(dim, 1)
    if start == -1 or (isinstance(start, int) and start >= TO_THE_END):
        first = back
    elif not is_nonnegative(first):
        return None  # clamped to 0, unless the dimension is empty
    else:
        first = dim_min(first, back)
    last = -1 if isinstance(end, int) and end < -TO_THE_END else dim_max(-1, _from_front(end, dim))
    return dim_max(0, ceil_div(sub(first, last), -step))


def _from_front(position: int | Expr, dim: Dim) -> Dim:
    """Return a position counted from the front; None where its sign is unknown."""
    low, high = lower_bound(position), upper_bound(position)
    if low is not None and low >= 0:
        return position
    return add(position, dim) if high is not None and high < 0 else None
