"""MaxRoiPool: the maxima of regions, over a grid of bins of whole pixels."""

from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.resampling import region_gradients, region_kernels
from sabir.opsets.families.resampling.regions import (
    channels_last,
    check_regions,
    items_in,
    over_bins,
    regions_type,
)
from sabir.opsets.families.shapes.sizes import allotted, spend_operations
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, at_least

max_roi_pool = Operator(
    "MaxRoiPool", summary="The maximum of each bin of a grid over each region, 0 for empty bins."
)

T = Constraint("T", FLOATS)

v1 = max_roi_pool.first(
    1,
    inputs=[
        Input("X", T, "Feature maps, (N, C, H, W).", differentiable=True),
        Input("rois", T, "(R, 5): a batch index, then the corners x1, y1, x2, y2.", differentiable=False),
    ],
    outputs=[Output("Y", T, "(R, C, *pooled_shape).", differentiable=True)],
    attributes=[
        Attribute(
            "spatial_scale",
            "float",
            "The pixels of `X` for a unit of the corners, which are then rounded.",
            default=1.0,
        ),
        Attribute(
            "pooled_shape",
            "ints",
            "The number of bins along height and width.",
            required=True,
            values=at_least(1),
        ),
    ],
)
v22 = v1.widen(22, T=BFLOAT16)

_ROW = 5  # numbers of a region
_AXES = 2


@v1.infer
def infer(x: TensorType, rois: TensorType, /, *, pooled_shape: Sequence[int]) -> TensorType:
    if len(pooled_shape) != _AXES:
        raise InferenceError(f"pooled_shape {list(pooled_shape)} must be a height and a width")
    return regions_type(x, rois, _ROW, pooled_shape, None)


@v1.evaluate
def evaluate(x: Array, rois: Array, /, *, pooled_shape: Sequence[int], spatial_scale: float) -> Array:
    check_regions(x, rois, _ROW)
    wide, boxes = widened(x), widened(rois)
    items = items_in(boxes[:, 0], x)
    spend_operations(len(items) * (8 + sum(pooled_shape)))
    # ties round away from 0, as in onnxruntime; the corners are inside the region
    scaled = boxes[:, 1:] * boxes.dtype.type(spatial_scale)
    corners = (np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)).astype(np.int64)
    maps = channels_last(wide)
    y: Array = np.empty(allotted((len(items), *pooled_shape, x.shape[1]), wide.dtype, x.size), wide.dtype)
    for number, (item, (left, top, right, bottom)) in enumerate(zip(items, corners, strict=True)):
        rows = _bins(int(top), int(bottom), pooled_shape[0], x.shape[2])
        columns = _bins(int(left), int(right), pooled_shape[1], x.shape[3])
        near, far = columns[0][0], columns[1][-1]
        inside = columns[0] - near, columns[1] - near
        found = over_bins(np.maximum, -np.inf, maps[item, :, near:far], rows, inside)
        empty = np.logical_or.outer(rows[0] >= rows[1], columns[0] >= columns[1])
        y[number] = np.where(empty[..., None], 0, found)
    return np.moveaxis(y, -1, 1).astype(x.dtype, copy=False)


def _bins(first: int, last: int, count: int, length: int) -> tuple[Array, Array]:
    """Return the starts and stops of the bins of a region; neighbours may share a pixel."""
    size = np.float32(max(last - first + 1, 1)) / np.float32(count)
    edges = np.arange(count + 1, dtype=np.float32) * size
    starts = np.floor(edges[:-1]).astype(np.int64) + first
    stops = np.ceil(edges[1:]).astype(np.int64) + first
    return np.clip(starts, 0, length), np.clip(stops, 0, length)


@v1.lower
def lower(
    x: Expression, rois: Expression, /, *, pooled_shape: Sequence[int], spatial_scale: float
) -> Expression:
    high, wide = pooled_shape
    return region_kernels.of_whole_pixels(x, rois, (high, wide), spatial_scale)


@v1.gradient
def gradient(
    g: Gradient, x: Value, rois: Value, /, *, pooled_shape: Sequence[int], spatial_scale: float
) -> tuple[Value, None]:
    """Of the first of equal maxima; the corners are rounded."""
    scaled = g.Mul(rois, spatial_scale)
    whole = g.Mul(g.Sign(scaled), g.Floor(g.Add(g.Abs(scaled), 0.5)))
    corners = g.Cast(whole, to=INT64.number)
    left, top, right, bottom = (g.Gather(corners, i, axis=1) for i in range(1, _ROW))
    reads = [
        region_gradients.whole_pixels(g, first, last, bins, g.Gather(g.sizes(x), axis), x)
        for first, last, bins, axis in ((top, bottom, pooled_shape[0], 2), (left, right, pooled_shape[1], 3))
    ]
    items = g.Cast(g.Gather(rois, 0, axis=1), to=INT64.number)
    return region_gradients.of_greatest(g, x, items, *reads), None


@max_roi_pool.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.arange(24, dtype=f).reshape(1, 1, 4, 6)
    x = np.concatenate([x, -x - 1])
    # bins over the whole map; and over five columns, whose middle one is in two bins
    rois = np.array([[0, 0, 0, 5, 3], [1, 1, 1, 5, 2]], f)
    y = [[[[8, 11], [20, 23]]], [[[-8, -10], [-14, -16]]]]
    for opset in (1, 22):
        yield Example(opset, x, rois, pooled_shape=[2, 2], expect=[y])
        yield Example(
            opset, x, rois[:1] * 2, pooled_shape=[1, 3], spatial_scale=0.5, expect=[[[[[19, 21, 23]]]]]
        )
    # regions half and completely outside the map; 0.5 rounds away from 0
    beyond = [[0, 4, 2.5, 7, 6], [0, 9, 9, 12, 12]]
    yield Example(1, x, beyond, pooled_shape=[2, 2], expect=[[[[[23, 0], [0, 0]]], [[[0, 0], [0, 0]]]]])
    for kind, opset in ((np.float16, 1), (np.float64, 1), (ml_dtypes.bfloat16, 22)):
        yield Example(opset, x.astype(kind), rois.astype(kind), pooled_shape=[2, 2], expect=[y])
    yield Example(1, [[[[np.nan, 1]]]], [[0, 0, 0, 1, 0]], pooled_shape=[1, 1], expect=[[[[[np.nan]]]]])
    yield Example(1, x, np.zeros((0, 5), f), pooled_shape=[2, 3], expect=[np.zeros((0, 1, 2, 3), f)])
