"""RoiAlign: regions sampled with interpolation, and pooled over a grid of bins."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.resampling import region_gradients, region_kernels
from sabir.opsets.families.resampling.region_gradients import Reads, sampled
from sabir.opsets.families.resampling.regions import (
    channels_last,
    check_regions,
    items_in,
    over_bins,
    regions_type,
)
from sabir.opsets.families.shapes.ranks import check_rank, check_shape
from sabir.opsets.families.shapes.sizes import allotted, set_aside, spend_operations
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    at_least,
    one_of,
    tensors,
)

roi_align = Operator(
    "RoiAlign", summary="The mean or maximum of interpolated samples in each bin of a grid over each region."
)

T1 = Constraint("T1", FLOATS)
T2 = Constraint("T2", tensors("int64"))

_BEFORE = "output_half_pixel"  # the behaviour before opset 16

v10 = roi_align.first(
    10,
    inputs=[
        Input("X", T1, "Feature maps, (N, C, H, W)."),
        Input("rois", T1, "(R, 4): the corners x1, y1, x2, y2."),
        Input("batch_indices", T2, "(R): the item of the batch of each region."),
    ],
    outputs=[Output("Y", T1, "(R, C, output_height, output_width).")],
    attributes=[
        Attribute(
            "mode",
            "string",
            "`avg`: the mean of the samples; `max`: the maximum of the neighbours times their weights.",
            default="avg",
            values=one_of("avg", "max"),
        ),
        Attribute(
            "output_height", "int", "The number of bins along the height.", default=1, values=at_least(1)
        ),
        Attribute(
            "sampling_ratio",
            "int",
            "The samples of a bin along each axis; 0: about one for each pixel.",
            default=0,
            values=at_least(0),
        ),
        Attribute(
            "output_width", "int", "The number of bins along the width.", default=1, values=at_least(1)
        ),
        Attribute("spatial_scale", "float", "The pixels of `X` for a unit of the corners.", default=1.0),
    ],
)
v16 = v10.extend(
    16,
    "Corners move half a pixel towards the origin, unless `coordinate_transformation_mode` disables it.",
    attributes=[
        Attribute(
            "coordinate_transformation_mode",
            "string",
            "`half_pixel`: corners move by half a pixel; `output_half_pixel`: they do not, and a region has "
            "a length of 1 or more pixels.",
            default="half_pixel",
            values=one_of("half_pixel", _BEFORE),
        )
    ],
)
v22 = v16.widen(22, T1=BFLOAT16)

_CORNERS = 4
_MOST_SAMPLES = 1 << 22  # for one region; more are a mistake
_SAMPLED = 96  # temporary bytes for each sample, approximately
_TOGETHER = 1 << 17  # samples and weights that are computed at a time, unless one region has more

v10.absent("downgrade", "no older operator samples regions between elements")


@v10.infer
def infer(
    x: TensorType, rois: TensorType, batch_indices: TensorType, /, *, mode: str, output_height: int,
    output_width: int, coordinate_transformation_mode: str = _BEFORE,
) -> TensorType:  # fmt: skip
    check_rank("batch_indices", batch_indices, 1)
    count = batch_indices.shape[0] if batch_indices.shape else None
    return regions_type(x, rois, _CORNERS, (output_height, output_width), count)


class AxisSamples(NamedTuple):
    """The samples along one axis of a region that are inside the map: neighbours, weights and bins."""

    low: Array
    high: Array
    low_weight: Array
    high_weight: Array
    bins: Array  # of each sample
    each: int  # the samples of a bin, including those outside the map
    weights: Array | None = None  # for a mean: of each pixel of the axis in the sum of each bin

    def ends(self, count: int) -> tuple[Array, Array]:
        """Return the starts and stops of the samples of each bin."""
        numbers = np.arange(count)
        return np.searchsorted(self.bins, numbers, "left"), np.searchsorted(self.bins, numbers, "right")


@v10.evaluate
def evaluate(
    x: Array, rois: Array, batch_indices: Array, /, *, mode: str, output_height: int, output_width: int,
    sampling_ratio: int, spatial_scale: float, coordinate_transformation_mode: str = _BEFORE,
) -> Array:  # fmt: skip
    check_regions(x, rois, _CORNERS)
    check_shape("batch_indices", batch_indices, len(rois))
    wide, boxes = widened(x), widened(rois)
    offset = 0.5 if coordinate_transformation_mode == "half_pixel" else 0
    corners = boxes * boxes.dtype.type(spatial_scale) - boxes.dtype.type(offset)
    spans = corners[:, 2:] - corners[:, :2]
    if not offset:
        spans = np.maximum(spans, 1)
    items = items_in(batch_indices, x)
    spend_operations(8 * len(items))
    whole = allotted((len(items), x.shape[1], output_height, output_width), wide.dtype, x.size)
    y: Array = np.empty(whole, wide.dtype)
    pool, maps = (_mean, wide) if mode == "avg" else (_greatest, channels_last(wide))
    down = RegionAxis.of(corners[:, 1], spans[:, 1], output_height, sampling_ratio, x.shape[2])
    across = RegionAxis.of(corners[:, 0], spans[:, 0], output_width, sampling_ratio, x.shape[3])
    for part in _parts(down.costs + across.costs):
        rows, columns = (axis.samples(part, weighed=mode == "avg") for axis in (down, across))
        for number, row, column in zip(range(part.start, part.stop), rows, columns, strict=True):
            y[number] = pool(maps[items[number]], row, column, (output_height, output_width))
    return y.astype(x.dtype, copy=False)


def _parts(costs: Array) -> Iterator[slice]:
    """Yield the regions to sample together, about `_TOGETHER` samples and weights at a time."""
    ends = np.flatnonzero(np.diff(np.cumsum(costs) // _TOGETHER)) + 1
    for first, last in itertools.pairwise([0, *ends.tolist(), len(costs)]):
        if first < last:
            yield slice(first, last)


class RegionAxis(NamedTuple):
    """One axis of all regions: their starts, the sizes of their bins, and the samples of each bin."""

    starts: Array
    sizes: Array
    each: Array
    parts: int  # the number of bins of a region
    length: int  # of the axis of the map

    @classmethod
    def of(cls, starts: Array, spans: Array, count: int, ratio: int, length: int) -> Self:
        """Divide spans into bins; raises ValueError for a region with too many samples."""
        sizes = spans / spans.dtype.type(count)
        each = np.full(len(sizes), float(ratio)) if ratio > 0 else np.ceil(sizes)
        if not (each * count <= _MOST_SAMPLES).all():
            raise ValueError(f"a region of {np.max(spans)} pixels needs more than {_MOST_SAMPLES:,} samples")
        return cls(starts, sizes, np.maximum(each, 0).astype(np.int64), count, length)

    @property
    def costs(self) -> Array:
        """The number of samples and weights of each region."""
        return self.parts * (self.each + self.length)

    def samples(self, part: slice, *, weighed: bool) -> list[AxisSamples]:
        """Return samples at equal distances over the bins of some regions, from the start of each."""
        each, kind = self.each[part], self.starts.dtype.type
        set_aside(int(each.sum()) * self.parts, _SAMPLED, "the samples")
        region = np.repeat(np.arange(len(each)), each * self.parts)
        ends = np.cumsum(each * self.parts)
        number = np.arange(len(region)) - np.repeat(ends - each * self.parts, each * self.parts)
        bins, inner = number // each[region], (number % each[region]).astype(kind) + kind(0.5)
        size = self.sizes[part][region]
        at = bins.astype(kind) * size
        at += self.starts[part][region]
        at += inner * size / each[region].astype(kind)
        on = (at >= -1) & (at <= self.length) & (self.length > 0)
        found = _neighbours(np.maximum(at[on], 0), self.length)
        return self._by_region(each, region[on], (*found, bins[on]), weighed=weighed)

    def _by_region(
        self, each: Array, region: Array, found: tuple[Array, ...], *, weighed: bool
    ) -> list[AxisSamples]:
        weights = self._weights(len(each), region, found) if weighed else [None] * len(each)
        ends = np.searchsorted(region, np.arange(len(each) + 1)).tolist()
        return [
            AxisSamples(*(part[a:b] for part in found), each=count, weights=own)
            for (a, b), count, own in zip(itertools.pairwise(ends), each.tolist(), weights, strict=True)
        ]

    def _weights(self, regions: int, region: Array, found: tuple[Array, ...]) -> Array:
        """Return the sum of the weights in a bin for each pixel of the axis, as (regions, bins, pixels)."""
        low, high, low_weight, high_weight, bins = found
        set_aside(regions * self.parts * self.length, low_weight.itemsize, "the weights")
        weights: Array = np.zeros((regions, self.parts, self.length), low_weight.dtype)
        np.add.at(weights, (region, bins, low), low_weight)
        np.add.at(weights, (region, bins, high), high_weight)
        return weights


def _neighbours(at: Array, length: int) -> tuple[Array, ...]:
    """Return the pixels before and after each coordinate, and their weights."""
    low = np.minimum(at.astype(np.int64), length - 1)
    high = np.minimum(low + 1, length - 1)
    beyond = np.where(high > low, at - low, 0).astype(at.dtype)
    return low, high, 1 - beyond, beyond


def _mean(image: Array, rows: AxisSamples, columns: AxisSamples, shape: tuple[int, int]) -> Array:
    """Weight the rows of `image` (C, H, W), then the columns: the mean of a bin is linear in both."""
    if not (rows.low.size and columns.low.size) or rows.weights is None or columns.weights is None:
        return np.zeros((len(image), *shape), image.dtype)
    count = image.dtype.type(rows.each * columns.each)
    # the samples of a region whose corners are exchanged run backwards
    high, wide = (slice(axis.low.min(), axis.high.max() + 1) for axis in (rows, columns))
    part = image[:, high, wide]
    if np.isfinite(part).all():
        return np.matmul(rows.weights[:, high], np.matmul(part, columns.weights[:, wide].T)) / count
    # a product with all weights would propagate infinities and NaNs to bins that do not sample them
    samples = np.add.reduce([*_weighed(np.moveaxis(image, 0, -1), rows, columns)])
    sums = over_bins(np.add, 0, samples, rows.ends(shape[0]), columns.ends(shape[1]))
    return np.moveaxis(sums, -1, 0) / count


def _greatest(image: Array, rows: AxisSamples, columns: AxisSamples, shape: tuple[int, int]) -> Array:
    """Return the maximum of the weighted neighbours in `image` (H, W, C), as the standard's tests do.

    Pixels outside the map count as 0.
    """
    best = np.maximum.reduce([*_weighed(image, rows, columns)])
    down, across = rows.ends(shape[0]), columns.ends(shape[1])
    found = over_bins(np.maximum, -np.inf, best, down, across)
    whole = [(ends[1] - ends[0] == s.each) & (s.each > 0) for ends, s in ((down, rows), (across, columns))]
    best = np.where(np.logical_and.outer(*whole)[..., None], found, np.maximum(found, 0))
    return np.moveaxis(best, -1, 0)


def _weighed(image: Array, rows: AxisSamples, columns: AxisSamples) -> Iterator[Array]:
    """Yield the four neighbours of each sample of `image` (H, W, C), times their weights."""
    if rows.low.size * columns.low.size > _MOST_SAMPLES:
        raise ValueError(f"a region needs {rows.low.size} times {columns.low.size} samples")
    for row, down in ((rows.low, rows.low_weight), (rows.high, rows.high_weight)):
        for column, across in ((columns.low, columns.low_weight), (columns.high, columns.high_weight)):
            yield image[row[:, None], column] * (down[:, None] * across)[..., None]


# ---------------------------------------------------------------- kernels


@v10.lower
def lower(
    x: Expression, rois: Expression, batch_indices: Expression, /, *, mode: str, output_height: int,
    output_width: int, sampling_ratio: int, spatial_scale: float,
    coordinate_transformation_mode: str = _BEFORE,
) -> Expression:  # fmt: skip
    offset = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    bins, op = (output_height, output_width), "mean" if mode == "avg" else "max"
    return region_kernels.aligned(
        x, rois, batch_indices, bins, sampling_ratio, op, scale=spatial_scale, offset=offset
    )


# ---------------------------------------------------------------- adapters


@v16.upgrade
def corners_as_before(b: Builder, /, *inputs: Value, **attributes: Any) -> Value:
    return b.RoiAlign(*inputs, coordinate_transformation_mode=_BEFORE, **attributes)


@v16.downgrade
def only_as_before(
    b: Builder, /, *inputs: Value, coordinate_transformation_mode: str, **attributes: Any
) -> Value:
    if coordinate_transformation_mode != _BEFORE:
        raise Unconvertible(f"RoiAlign:10 has only the mode {_BEFORE!r}")
    return b.RoiAlign(*inputs, **attributes)


@v16.gradient
def gradient(
    g: Gradient, x: Value, rois: Value, batch_indices: Value, /, *, mode: str, output_height: int,
    output_width: int, sampling_ratio: int, **attributes: Any,
) -> tuple[Value, None, None]:  # fmt: skip
    """By the maps alone, as in PyTorch."""
    offset = 0.5 if attributes["coordinate_transformation_mode"] == "half_pixel" else 0.0
    corners = g.Sub(g.Mul(rois, float(attributes["spatial_scale"])), offset)
    left, top, right, bottom = (g.Gather(corners, i, axis=1) for i in range(_CORNERS))
    axes = ((top, bottom, output_height, 2), (left, right, output_width, 3))
    reads: list[Reads] = []
    for first, last, bins, axis in axes:
        span = g.Sub(last, first) if offset else g.Max(g.Sub(last, first), 1)
        length = g.Gather(g.sizes(x), axis)
        reads.append(sampled(g, first, span, bins, sampling_ratio, length))
    pool = region_gradients.of_means if mode == "avg" else region_gradients.of_greatest
    return pool(g, x, batch_indices, *reads), None, None


@roi_align.examples
def examples() -> Iterator[Example]:
    f = np.float32
    # both maps are linear, so that the mean of a bin is the value at its centre
    x = np.stack([np.arange(16, dtype=f), 30 - 2 * np.arange(16, dtype=f)]).reshape(2, 1, 4, 4)
    rois, items = np.array([[0, 0, 2, 2], [1, 0, 3, 2]], f), [0, 1]
    bins: dict[str, Any] = {"output_height": 2, "output_width": 2}
    before = [[[[2.5, 3.5], [6.5, 7.5]]], [[[23, 21], [15, 13]]]]
    centred = [[[[0, 1], [4, 5]]], [[[28, 26], [20, 18]]]]
    quarters = [[[[1.25, 1.5], [2.25, 2.5]]], [[[7, 6.5], [5, 4.5]]]]  # of the greatest neighbour
    yield Example(10, x, rois, items, **bins, expect=[before])
    yield Example(10, x, rois * 2, items, **bins, spatial_scale=0.5, sampling_ratio=2, expect=[before])
    yield Example(10, x, rois, items, **bins, mode="max", expect=[quarters])
    for opset in (16, 22):
        yield Example(opset, x, rois, items, **bins, expect=[centred])
        old: dict[str, Any] = {**bins, "coordinate_transformation_mode": "output_half_pixel"}
        yield Example(opset, x, rois, items, **old, sampling_ratio=3, expect=[before])
        yield Example(opset, x, rois, items, **old, mode="max", sampling_ratio=1, expect=[quarters])
        inner = [[1, 1, 3, 3]]
        yield Example(opset, x, inner, items[1:], sampling_ratio=2, expect=[[[[[15]]]]])
    for kind, opset in ((np.float16, 10), (np.float64, 10)):
        yield Example(opset, x.astype(kind), rois.astype(kind), items, **bins, expect=[before])
    brain = ml_dtypes.bfloat16
    yield Example(22, x.astype(brain), rois.astype(brain), items, **bins, expect=[centred])


@roi_align.examples
def examples_of_edges() -> Iterator[Example]:
    f = np.float32
    x = np.arange(16, dtype=f).reshape(1, 1, 4, 4)
    # one of four samples inside the map, all of them outside, and a region of size 0
    rois, items = np.array([[3, 3, 7, 7], [9, 9, 11, 11], [2, 2, 2, 2]], f), np.zeros(3, int)
    ratio: dict[str, Any] = {"sampling_ratio": 2}
    back: dict[str, Any] = {**ratio, "output_height": 2, "output_width": 2}
    yield Example(16, x, np.array([[3, 3, 1, 1]], f), items[:1], **back, expect=[[[[[10, 9], [6, 5]]]]])
    yield Example(16, x, rois[:2], items[:2], **ratio, expect=[np.array([15 / 4, 0], f).reshape(2, 1, 1, 1)])
    yield Example(
        16, x, rois[:2], items[:2], **ratio, mode="max", expect=[np.array([15, 0], f).reshape(2, 1, 1, 1)]
    )
    yield Example(16, -x, rois[:1], items[:1], **ratio, mode="max", expect=[np.zeros((1, 1, 1, 1), f)])
    for mode in ("avg", "max"):
        yield Example(16, x, rois[2:], items[2:], mode=mode, expect=[np.zeros((1, 1, 1, 1), f)])
        yield Example(
            10, x, rois[:0], items[:0], mode=mode, output_width=3, expect=[np.zeros((0, 1, 1, 3), f)]
        )
    hole = x.copy()
    hole[0, 0, 0, 0] = np.nan  # which one bin samples
    bins = [[[[np.nan, 1], [4, 5]]]]
    yield Example(
        16, hole, [[0, 0, 2, 2]], items[:1], output_height=2, output_width=2, sampling_ratio=1, expect=[bins]
    )
