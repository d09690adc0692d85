"""Regions of interest: boxes of a feature map, each pooled to a grid of bins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError
from sabir.ir import TensorType
from sabir.opsets.families.ranks import check_rank, check_shape
from sabir.opsets.families.shapes import same_dim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array

_MAP_RANK = 4  # batch, channels, height, width


def regions_type(
    x: TensorType, rois: TensorType, columns: int, pooled: Sequence[int], count: Dim
) -> TensorType:
    """Return the type (R, C, *pooled) of `rois` (R, columns) of the feature maps `x` (N, C, H, W)."""
    check_regions(x, rois, columns)
    regions = same_dim((rois.shape[0] if rois.shape else None, count), "the number of regions")
    return TensorType(x.element, (regions, x.shape[1] if x.shape else None, *pooled))


def check_regions(x: TensorType | Array, rois: TensorType | Array, columns: int) -> None:
    """Raise InferenceError where the feature maps are not (N, C, H, W), or the regions not (R, columns)."""
    check_rank("X", x, _MAP_RANK)
    check_shape("rois", rois, None, columns)


def items_in(indices: Array, x: Array) -> list[int]:
    """Return which item of the batch each region lies in; raises ValueError for one that is not there."""
    found = [int(i) for i in indices.tolist()]
    wrong = next((i for i in found if not 0 <= i < len(x)), None)
    if wrong is not None:
        raise EvaluationError(f"a region lies in item {wrong} of a batch of {len(x)}")
    return found


def over_bins(
    operation: np.ufunc, empty: float, x: Array, rows: tuple[Array, Array], columns: tuple[Array, Array]
) -> Array:
    """Reduce `x` (S, T, C) to (rows, columns, C): bins, which are told by where they start and stop.

    Channels come last, where they lie side by side, and all of them are reduced at once.
    """
    down = np.stack([operation.reduce(x[a:b], axis=0, initial=empty) for a, b in zip(*rows, strict=True)])
    return np.stack(
        [operation.reduce(down[:, a:b], axis=1, initial=empty) for a, b in zip(*columns, strict=True)], axis=1
    )


def channels_last(x: Array) -> Array:
    """Return maps (N, C, H, W) as (N, H, W, C), laid out like that."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))
