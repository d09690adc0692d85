"""Regions of interest: boxes in feature maps, each pooled to a grid of bins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import check_rank, check_shape
from sabir.opsets.families.shapes.shapes import same_dim

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
    """Raise InferenceError unless the feature maps are (N, C, H, W), and the regions (R, columns)."""
    check_rank("X", x, _MAP_RANK)
    check_shape("rois", rois, None, columns)


def items_in(indices: Array, x: Array) -> list[int]:
    """Return the item of the batch of each region; raises EvaluationError for one outside the batch."""
    found = [int(i) for i in indices.tolist()]
    wrong = next((i for i in found if not 0 <= i < len(x)), None)
    if wrong is not None:
        raise EvaluationError(f"a region is in item {wrong} of a batch of {len(x)}")
    return found


def over_bins(
    operation: np.ufunc, empty: float, x: Array, rows: tuple[Array, Array], columns: tuple[Array, Array]
) -> Array:
    """Reduce `x` (S, T, C) to bins (rows, columns, C); `rows` and `columns` are the starts and stops of bins.

    Channels come last, where they are adjacent, and are reduced together.
    """
    down = np.stack([operation.reduce(x[a:b], axis=0, initial=empty) for a, b in zip(*rows, strict=True)])
    return np.stack(
        [operation.reduce(down[:, a:b], axis=1, initial=empty) for a, b in zip(*columns, strict=True)], axis=1
    )


def channels_last(x: Array) -> Array:
    """Return maps (N, C, H, W) as (N, H, W, C), contiguous."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))
