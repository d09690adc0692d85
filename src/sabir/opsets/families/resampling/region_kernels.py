"""Regions of feature maps, pooled over a grid of bins, as tensor expressions."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

from sabir import loops
from sabir.loops import NotLowered, PoolRegions
from sabir.opsets.families.windows.window_kernels import channels_first, channels_last

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Expression, Size

_CORNERS = 4
_MOST_BINS = 1 << 10  # along an axis
_MOST_SAMPLES = 1 << 22  # of a region; the interpreter runs calls with more
_MOST_PIXELS = 1 << 30  # the interpreter runs calls with corners further away


def aligned(
    x: Expression, rois: Expression, items: Expression, bins: tuple[int, int], ratio: int, op: str, *,
    scale: float, offset: float,
) -> Expression:  # fmt: skip
    """Return the `mean` or the `max` of the samples of each bin, as RoiAlign."""
    _check_bins(bins)
    if x.rank != _CORNERS or not loops.same_shape(rois.shape, (*items.shape, _CORNERS)):
        raise NotLowered("whether the regions match the maps is known at run time only")
    corners = loops.apply("sub", loops.apply("mul", rois, scale), offset)
    begins: list[Expression] = []
    sizes: list[Expression] = []
    for axis, count in zip((1, 0), bins, strict=True):
        start, end = (loops.narrow(corners, 1, n, 1) for n in (axis, axis + 2))
        span = loops.apply("sub", end, start)
        size = loops.apply("div", span if offset else loops.apply("max", span, 1), count)
        place = loops.cast(loops.count((1, count), 1), size.element)
        begins.append(loops.apply("add", loops.apply("mul", place, size), start))
        sizes.append(size)
    each = [_samples(size, ratio) for size in sizes]
    along = [loops.apply("mul", n, count) for n, count in zip(each, bins, strict=True)]
    # along each axis too, as the product may be 0
    counted = (*along, loops.apply("mul", *along))
    few = reduce(partial(loops.apply, "and"), [loops.apply("le", n, _MOST_SAMPLES) for n in counted])
    item = loops.reshape(loops.cast(items, "int64"), (items.shape[0], 1))
    item = _known(item, loops.apply("and", few, _is_item(item, x.shape[0])))
    counts = loops.join([item, *(loops.cast(n, "int64") for n in each)], 1)
    return _pooled(x, op, bins, counts, loops.join([*begins, *sizes], 1))


def of_whole_pixels(x: Expression, rois: Expression, bins: tuple[int, int], scale: float) -> Expression:
    """Return the maximum of the pixels of each bin, as MaxRoiPool does it."""
    _check_bins(bins)
    if x.rank != _CORNERS or not loops.same_shape(rois.shape, (rois.shape[0], 1 + _CORNERS)):
        raise NotLowered("whether the regions match the maps is known at run time only")
    first, scaled = (loops.narrow(rois, 1, *part) for part in ((0, 1), (1, _CORNERS)))
    scaled = loops.apply("mul", scaled, scale)
    nearest = loops.apply("floor", loops.apply("add", loops.apply("abs", scaled), 0.5))
    near = loops.apply("lt", loops.reduce("max", nearest, [1]), _MOST_PIXELS)  # and no NaN
    corners = loops.cast(loops.apply("mul", loops.apply("sign", scaled), nearest), "int64")
    ends = [_ends(corners, axis, bins[1 - axis], x.shape[3 - axis]) for axis in (1, 0)]
    known = loops.apply("and", near, _is_item(loops.apply("trunc", first), x.shape[0]))
    item = _known(loops.cast(first, "int64"), known)
    return _pooled(x, "max", bins, loops.join([item, *ends], 1), None)


def _check_bins(bins: Sequence[int]) -> None:
    if max(bins) > _MOST_BINS:
        raise NotLowered("a region has very many bins")


def _is_item(item: Expression, count: Size) -> Expression:
    below = loops.apply("lt", item, loops.sized(item.element, count))
    return loops.apply("and", loops.apply("ge", item, 0), below)


def _known(item: Expression, known: Expression) -> Expression:
    """Return the item of a region, or an error of the run."""
    return loops.where(known, item, -1)


def _samples(size: Expression, ratio: int) -> Expression:
    """Return how many samples a bin has along an axis, as a number of the type of its size."""
    if ratio > 0:
        return loops.expand(loops.number(size.element, ratio), size.shape)
    return loops.apply("max", loops.apply("ceil", size), 0)


def _ends(corners: Expression, axis: int, bins: int, length: Size) -> Expression:
    """Return the begin and the end pixel of each bin along an axis, interleaved: [R, 2 * bins]."""
    first, last = (loops.narrow(corners, 1, n, 1) for n in (axis, axis + 2))
    pixels = loops.apply("max", loops.apply("add", loops.apply("sub", last, first), 1), 1)
    size = loops.apply("div", loops.cast(pixels, "float"), bins)
    number = loops.cast(loops.count((1, bins), 1), "float")
    found: list[Expression] = []
    for rounding, more in (("floor", 0), ("ceil", 1)):
        edge = loops.apply(rounding, loops.apply("mul", loops.apply("add", number, more), size))
        place = loops.apply("add", loops.cast(edge, "int64"), first)
        place = loops.apply("min", loops.apply("max", place, 0), loops.sized("int64", length))
        found.append(loops.reshape(place, (corners.shape[0], bins, 1)))
    return loops.reshape(loops.join(found, 2), (corners.shape[0], 2 * bins))


def _pooled(
    x: Expression, op: str, bins: tuple[int, int], counts: Expression, places: Expression | None
) -> Expression:
    images, shape = channels_last(x), (counts.shape[0], *bins, x.shape[1])
    return channels_first(PoolRegions(x.element, shape, op, bins, images, counts, places))
