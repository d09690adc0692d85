"""Updates written into a copy of a tensor, one element or one part for each index.

Of several updates for one index the last one applies, or a reduction combines them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType, may_be_equal
from sabir.opsets.families.indexing.indexing import check_index_shape, check_known, checked
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import check_least_rank
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.schema import Attribute, one_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.opsets.typing import Array

NONE = "none"
_SUMS = (NONE, "add", "mul")
EXTREMES = one_of(*_SUMS, "max", "min")
REDUCTION = Attribute(
    "reduction",
    "string",
    "none replaces the old value; add, mul, max or min combines each update with it.",
    default=NONE,
    values=one_of(*_SUMS),
)
DUPLICATES = "Of several for one index the last applies, or all are reduced."
_REDUCTIONS: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _moved(
    kind: TensorType, how: Callable[[Array, Array], Array], data: TensorType, updates: TensorType
) -> TensorType:
    def move(*arrays: Array) -> Array:
        old, new = arrays
        return how(old, new)

    return contents.moved(kind, move, data, updates)


# ---------------------------------------------------------------- one element for each index


def infer_elements(
    data: TensorType, indices: TensorType, updates: TensorType, /, *, axis: int, reduction: str = NONE
) -> TensorType:
    """The output has the type of `data`; contents are moved where the indices are known."""
    kind = TensorType(data.element, data.shape)
    _check_same_shape(indices, updates)
    if data.shape is None:
        return kind
    axis = axis_in(axis, len(data.shape))
    if indices.shape is not None:
        check_index_shape(data.shape, indices.shape, axis)
    check_known(indices.known, data.shape[axis])
    places = contents.array_of(indices)
    if places is None or reduction != NONE:
        return kind
    return _moved(kind, lambda old, new: elements(old, places, new, axis=axis), data, updates)


def _check_same_shape(indices: TensorType, updates: TensorType) -> None:
    if indices.shape is None or updates.shape is None:
        return
    pairs = zip(indices.shape, updates.shape, strict=False)
    if len(indices.shape) != len(updates.shape) or any(not may_be_equal(*pair) for pair in pairs):
        raise InferenceError(f"`updates` must have the shape of `indices`, {indices}, and is {updates}")


def elements(data: Array, indices: Array, updates: Array, /, *, axis: int, reduction: str = NONE) -> Array:
    """Write each update at its index: `updates[i, j]` to `[i, indices[i, j]]` where `axis` is 1."""
    axis = axis_in(axis, data.ndim)
    if indices.shape != updates.shape or indices.ndim != data.ndim:
        raise ValueError(
            f"`indices` {list(indices.shape)} and `updates` {list(updates.shape)} must have one shape,"
            f" of the rank of `data` {list(data.shape)}"
        )
    check_index_shape(data.shape, indices.shape, axis)
    flat: Array = np.zeros((1,) * data.ndim, np.int64)
    for place, (size, count) in enumerate(zip(data.shape, indices.shape, strict=True)):
        row: Array = np.arange(count, dtype=np.int64).reshape([
            -1 if i == place else 1 for i in range(data.ndim)
        ])
        flat = np.asarray(flat * size + (checked(indices, size) if place == axis else row))
    return _written(data, np.broadcast_to(flat, indices.shape).ravel(), updates.ravel(), reduction)


def _written(data: Array, places: Array, updates: Array, reduction: str) -> Array:
    """Write to a flat copy; float16 is reduced in float32, and rounded once."""
    if reduction == NONE:
        copy: Array = data.flatten()
        copy[places] = updates
        return copy.reshape(data.shape)
    if reduction == "mul" and data.dtype.kind == "O":
        raise ValueError("strings cannot be multiplied; use the reduction add, max or min")
    copy: Array = widened(data).flatten()
    with np.errstate(all="ignore"):
        _REDUCTIONS[reduction].at(copy, places, widened(updates))
    return copy.reshape(data.shape).astype(data.dtype, copy=False)


# ---------------------------------------------------------------- one part for each tuple of indices


def infer_tuples(
    data: TensorType, indices: TensorType, updates: TensorType, /, *, reduction: str = NONE
) -> TensorType:
    """The output has the type of `data`; contents are moved where the indices are known."""
    kind = TensorType(data.element, data.shape)
    check_least_rank("indices", indices, 1)
    if data.shape is None or not indices.shape or not isinstance(indices.shape[-1], int):
        return kind
    width = indices.shape[-1]
    if width > len(data.shape):
        raise InferenceError(f"tuples of {width} indices are too long for `data` of rank {len(data.shape)}")
    wanted = (*indices.shape[:-1], *data.shape[width:])
    if updates.shape is not None and (
        len(updates.shape) != len(wanted)
        or any(not may_be_equal(*pair) for pair in zip(wanted, updates.shape, strict=True))
    ):
        raise InferenceError(f"`updates` is {updates}, and must be {TensorType(updates.element, wanted)}")
    places = contents.array_of(indices)
    if places is None or reduction != NONE:
        return kind
    return _moved(kind, lambda old, new: tuples(old, places, new), data, updates)


def tuples(data: Array, indices: Array, updates: Array, /, *, reduction: str = NONE) -> Array:
    """Write one part for each tuple, a last row of `indices`, which indexes the first axes of `data`."""
    check_least_rank("indices", indices, 1)
    width = indices.shape[-1]
    if width > data.ndim or updates.shape != (*indices.shape[:-1], *data.shape[width:]):
        raise ValueError(
            f"`updates` {list(updates.shape)} does not fit `indices` {list(indices.shape)}"
            f" and `data` {list(data.shape)}"
        )
    places: Array = np.zeros(indices.shape[:-1], np.int64)
    for axis in range(width):
        size = data.shape[axis]
        places = np.asarray(places * size + checked(indices[..., axis], size))
    part = math.prod(data.shape[width:])
    flat: Array = places.reshape(-1, 1) * part + np.arange(part)
    return _written(data, flat.ravel(), updates.ravel(), reduction)
