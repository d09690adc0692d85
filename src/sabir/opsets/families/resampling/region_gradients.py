"""Gradients of poolings over regions of feature maps, by the maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import check_elements
from sabir.elements import FLOAT, INT64
from sabir.opsets.families.indexing.move_gradients import as_numbers, zeros_of
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.resampling.sampling_gradients import image_of, rows_of

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.typing import Array, Gradient


class Reads(NamedTuple):
    """The pixels along one axis that each bin of each region reads, (regions, bins, pixels).

    Pixels that are not `there` do not belong to the bin, and those that are not `on` are outside of the map,
    and count as 0. `each` is the number of samples of a bin, (regions).
    """

    pixel: Value
    weight: Value
    there: Value
    on: Value
    each: Value


def sampled(g: Gradient, start: Value, span: Value, bins: int, ratio: int, length: Value) -> Reads:
    """Return what RoiAlign reads along an axis: the pixels before and after each sample."""
    size = g.Div(span, float(bins))
    if ratio > 0:
        each = g.Expand(np.array(ratio, np.int64), g.Shape(size))
    else:
        each = g.Max(g.Cast(g.Ceil(size), to=INT64.number), 0)
    numbers = g.Range(0, g.ReduceMax(g.Concat(each, [1], axis=0), keepdims=0), 1)
    at = _coordinates(g, start, size, each, bins, numbers)
    there = g.Expand(g.Less(numbers, g.Unsqueeze(each, [1, 2])), g.Shape(at))
    last = g.Cast(length, to=element_of(start).number)
    on = g.And(there, g.And(g.GreaterOrEqual(at, -1), g.LessOrEqual(at, last)))
    at = g.Max(g.Min(at, g.Sub(last, 1)), 0)
    beyond, before = g.Sub(at, g.Floor(at)), g.Cast(g.Floor(at), to=INT64.number)
    after = g.Min(g.Add(before, 1), g.Sub(length, 1))
    pairs = ((before, after), (g.Sub(1, beyond), beyond), (there, there), (on, on))
    pixel, weight, there, on = (g.Concat(*pair, axis=2) for pair in pairs)
    return Reads(pixel, weight, there, on, each)


def _coordinates(g: Gradient, start: Value, size: Value, each: Value, bins: int, numbers: Value) -> Value:
    """Return the coordinates of the samples of each bin, (regions, bins, samples)."""
    kind = element_of(start)
    share = g.Div(size, g.Cast(g.Max(each, 1), to=kind.number))
    within = g.Mul(g.Add(g.Cast(numbers, to=kind.number), 0.5), g.Unsqueeze(share, [1, 2]))
    steps = g.Mul(g.Unsqueeze(size, [1]), _numbers(bins).astype(kind.dtype))
    return g.Add(g.Unsqueeze(g.Add(g.Unsqueeze(start, [1]), steps), [2]), within)


def _numbers(bins: int) -> Array:
    """Return the numbers of the bins; raises LimitError for too many."""
    check_elements(bins, width=4)
    return np.arange(bins, dtype=np.float32)


def whole_pixels(g: Gradient, first: Value, last: Value, bins: int, length: Value, like: Value) -> Reads:
    """Return what MaxRoiPool reads along an axis: from the corner `first` to the corner `last`."""
    count = g.Cast(g.Max(g.Add(g.Sub(last, first), 1), 1), to=FLOAT.number)
    size = g.Unsqueeze(g.Div(count, float(bins)), [1])
    starts, stops = (
        g.Max(g.Min(g.Add(g.Cast(edge, to=INT64.number), g.Unsqueeze(first, [1])), length), 0)
        for edge in (
            g.Floor(g.Mul(size, _numbers(bins))),
            g.Ceil(g.Mul(size, _numbers(bins) + np.float32(1))),
        )
    )
    counts = g.Sub(stops, starts)
    most = g.ReduceMax(g.Concat(g.Reshape(counts, [-1]), [1], axis=0), keepdims=0)
    inner = g.Range(0, most, 1)
    pixel = g.Add(g.Unsqueeze(starts, [2]), inner)
    there = g.Less(inner, g.Unsqueeze(counts, [2]))
    pixel = g.Max(g.Min(pixel, g.Sub(length, 1)), 0)
    ones = as_numbers(g, g.Equal(pixel, pixel), like)
    return Reads(pixel, ones, there, there, counts)


def of_means(g: Gradient, x: Value, items: Value, rows: Reads, columns: Reads) -> Value:
    """Return the gradient of means, which are a product of maps with the weights of rows and of columns."""
    down, across = (
        _weights(g, reads, g.Shape(x, start=axis, end=axis + 1), x)
        for axis, reads in ((2, rows), (3, columns))
    )
    d = g.MatMul(g.Unsqueeze(g.Transpose(down, perm=[0, 2, 1]), [1]), g.dy)  # (R, C, H, bins)
    left = g.Flatten(g.Transpose(d, perm=[1, 2, 0, 3]), axis=2)
    numbers = g.Range(0, g.Squeeze(g.Shape(x, end=1), [0]), 1)
    mine = g.Equal(g.Unsqueeze(numbers, [1]), items)
    chosen = g.Where(g.Unsqueeze(mine, [2, 3]), across, 0)  # (N, R, bins, W)
    right = g.Concat(g.Shape(x, end=1), g.Shape(left, start=1), g.Shape(x, start=3), axis=0)
    return g.Reshape(g.MatMul(left, g.Reshape(chosen, right, allowzero=1)), g.sizes(x), allowzero=1)


def _weights(g: Gradient, reads: Reads, length: Value, like: Value) -> Value:
    """Return the weight of each pixel of an axis in the mean of each bin, (regions, bins, pixels)."""
    numbers = g.Range(0, g.Squeeze(length, [0]), 1)
    here = g.And(g.Equal(g.Unsqueeze(reads.pixel, [3]), numbers), g.Unsqueeze(reads.on, [3]))
    sums = g.ReduceSum(g.Where(here, g.Unsqueeze(reads.weight, [3]), 0), [2], keepdims=0)
    each = g.Cast(g.Max(reads.each, 1), to=element_of(like).number)
    return g.Div(sums, g.Unsqueeze(each, [1, 2]))


def of_greatest(g: Gradient, x: Value, items: Value, rows: Reads, columns: Reads) -> Value:
    """Return the gradient of maxima: that of the first greatest element of each bin."""
    number, weight, there, on = _both(g, x, items, rows, columns)
    channels = g.Gather(rows_of(g, x), g.Reshape(number, [-1]), axis=0)
    shape = g.Concat(g.Shape(number), g.Shape(channels, start=1), axis=0)
    read = g.Mul(g.Reshape(channels, shape, allowzero=1), g.Unsqueeze(weight, [2]))
    read = g.Where(g.Unsqueeze(on, [2]), read, 0)
    best = g.ArgMax(g.Where(g.Unsqueeze(there, [2]), read, -np.inf), axis=1, keepdims=0)  # (bins, C)
    factor = g.GatherElements(g.Where(on, weight, 0), best, axis=1)
    updates = g.Mul(g.Flatten(g.Transpose(g.dy, perm=[0, 2, 3, 1]), axis=3), factor)
    zeros = zeros_of(g, g.Shape(rows_of(g, x)), x)
    places = g.GatherElements(number, best, axis=1)
    return image_of(g, g.ScatterElements(zeros, places, updates, axis=0, reduction="add"), x)


def _both(g: Gradient, x: Value, items: Value, rows: Reads, columns: Reads) -> tuple[Value, ...]:
    """Return the numbers of the pixels of each bin, their weights, and masks, (regions * bins, pixels)."""
    down, across = (
        [g.Unsqueeze(v, axes) for v in reads[:4]] for reads, axes in ((rows, [2, 4]), (columns, [1, 3]))
    )
    height, width = (g.Shape(x, start=i, end=i + 1) for i in (2, 3))
    item = g.Mul(g.Unsqueeze(items, [1, 2, 3, 4]), height)
    both = (
        g.Add(g.Mul(g.Add(item, down[0]), width), across[0]), g.Mul(down[1], across[1]),
        g.And(down[2], across[2]), g.And(down[3], across[3]),
    )  # fmt: skip
    pixels = g.Mul(g.Shape(rows.pixel, start=2), g.Shape(columns.pixel, start=2))
    count = g.Div(g.Size(both[0]), pixels)
    return tuple(g.Reshape(v, g.Concat(count, pixels, axis=0), allowzero=1) for v in both)
