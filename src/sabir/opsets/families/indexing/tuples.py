"""GatherND: the parts of a tensor at tuples of indices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.indexing.indexing import checked
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import check_least_rank
from sabir.opsets.families.shapes.shapes import same_dim

if TYPE_CHECKING:
    from sabir.ir import Shape
    from sabir.opsets.typing import Array


def infer(data: TensorType, indices: TensorType, /, *, batch_dims: int = 0) -> TensorType:
    """The type of the parts; raises InferenceError for ranks that do not belong together."""
    check_least_rank("indices", indices, 1)
    if data.shape is None or not indices.shape or not isinstance(indices.shape[-1], int):
        return TensorType(data.element)
    width = indices.shape[-1]
    check_ranks(data.shape, indices.shape, batch_dims, width)
    pairs = zip(data.shape[:batch_dims], indices.shape[:batch_dims], strict=True)
    shared = [same_dim(pair, f"batch dimension {i}") for i, pair in enumerate(pairs)]
    dims = (*shared, *indices.shape[batch_dims:-1], *data.shape[batch_dims + width :])
    kind = TensorType(data.element, dims)
    places = contents.array_of(indices)
    if places is None:
        return kind
    return contents.moved(kind, lambda known: _picked(known, places, batch_dims), data)


def evaluate(data: Array, indices: Array, /, *, batch_dims: int = 0) -> Array:
    """Return the part of `data` at each tuple; raises IndexError for one outside."""
    check_least_rank("indices", indices, 1)
    check_ranks(data.shape, indices.shape, batch_dims, indices.shape[-1])
    if data.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ValueError(
            f"`data` {list(data.shape)} and `indices` {list(indices.shape)} differ in their batch dimensions"
        )
    return _picked(data, indices, batch_dims)


def check_ranks(data: Shape, indices: Shape, batch_dims: int, width: int) -> None:
    """Raise InferenceError for tuples longer than the rank of `data` without its batch dimensions."""
    if not 0 <= batch_dims < min(len(data), len(indices)):
        raise InferenceError(
            f"`batch_dims` {batch_dims} must be below the ranks {len(data)} and {len(indices)}"
        )
    if not 0 <= width <= len(data) - batch_dims:
        raise InferenceError(f"tuples of {width} indices are too long for `data` of rank {len(data)}")


def _picked(data: Array, indices: Array, batch_dims: int) -> Array:
    """Number the positions of tuples, so that one `take` of rows reads all of them."""
    batch, width = data.shape[:batch_dims], indices.shape[-1]
    indexed, row = data.shape[batch_dims : batch_dims + width], data.shape[batch_dims + width :]
    places: Array = np.zeros(indices.shape[:-1], np.int64)
    for axis, size in enumerate(indexed):
        places = np.asarray(places * size + checked(indices[..., axis], size))
    rows = data.reshape(math.prod(batch) * math.prod(indexed), *row)
    if places.ndim == 0:
        return rows[int(places), ...]
    base = np.arange(math.prod(batch), dtype=np.int64) * math.prod(indexed)
    spread: tuple[int, ...] = (*batch, *(1,) * (places.ndim - batch_dims))
    return np.take(rows, np.add(places, base.reshape(spread)), axis=0)
