"""Regions of feature maps, sampled at equal distances, as tensor expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir import loops
from sabir.loops import NotLowered
from sabir.opsets.families.tap_kernels import Images, Pixels, combined

if TYPE_CHECKING:
    from sabir.loops import Expression, Size

_CORNERS = 4
_MOST_SAMPLES = 1 << 10  # of a region along an axis; more are evaluated


def aligned(
    x: Expression, rois: Expression, items: Expression, bins: tuple[int, int], ratio: int, op: str, *,
    scale: float, offset: float,
) -> Expression:  # fmt: skip
    """Return the mean (`sum`) or the maximum (`max`) of the samples of each bin, as RoiAlign does it."""
    if ratio < 1:
        raise NotLowered("the number of samples depends on the contents of `rois`")
    if max(bins) * ratio > _MOST_SAMPLES:
        raise NotLowered("a region has very many samples")
    if x.rank != _CORNERS or not loops.same_shape(rois.shape, (*items.shape, _CORNERS)):
        raise NotLowered("whether the regions match the maps is known at run time only")
    corners = loops.apply("sub", loops.apply("mul", rois, scale), offset)
    rows, columns = (
        _along(corners, axis, bins[1 - axis], ratio, x.shape[3 - axis], offset) for axis in (1, 0)
    )
    taps, count = 2 * ratio, rois.shape[0]
    down, across = (taps, 1, count, bins[0], 1), (1, taps, count, 1, bins[1])
    found = combined([_spread(rows, down), _spread(columns, across)], x.shape[2:])
    images = Images.of(x)
    item = loops.reshape(loops.cast(items, "int64"), (count, 1, 1))
    valid = loops.apply("ge", item, 0), loops.apply("lt", item, loops.sized("int64", x.shape[0]))
    numbers = loops.cast(images.numbers(found, item), "int64")
    past = loops.sized("int64", images.pixels + 1)  # an error of the run
    numbers = loops.where(loops.apply("and", *valid), numbers, past)
    read = _spread(found._replace(places=numbers), (taps * taps, count, *bins))
    y = images.read(*read, op)
    return loops.apply("div", y, ratio * ratio) if op == "sum" else y


def _spread(x: Pixels, shape: tuple[Size, ...]) -> Pixels:
    return Pixels(*(loops.reshape(part, shape) for part in x))


def _along(corners: Expression, axis: int, bins: int, ratio: int, length: Size, offset: float) -> Pixels:
    """Return the neighbours [2 * ratio, regions, bins] of the samples of each bin along an axis."""
    at = _samples(corners, axis, bins, ratio, offset)
    last = loops.sized(corners.element, length)
    on = loops.apply("and", loops.apply("ge", at, -1), loops.apply("le", at, last))
    if length == 0:
        on = loops.expand(loops.number("bool", 0), at.shape)
    at = loops.apply("max", loops.where(on, at, 0), 0)
    top = loops.sized("int64", length - 1)
    low = loops.apply("max", loops.apply("min", loops.cast(at, "int64"), top), 0)
    high = loops.apply("max", loops.apply("min", loops.apply("add", low, 1), top), 0)
    beyond = loops.apply("sub", at, loops.cast(low, at.element))
    beyond = loops.where(loops.apply("gt", high, low), beyond, 0)
    weights = loops.apply("sub", 1, beyond), beyond
    return Pixels(*(loops.join(pair, 0) for pair in ((low, high), (on, on), weights)))


def _samples(corners: Expression, axis: int, bins: int, ratio: int, offset: float) -> Expression:
    """Return the coordinates [ratio, regions, bins] of the samples."""
    start, end = (loops.narrow(corners, 1, n, 1) for n in (axis, axis + 2))
    span = loops.apply("sub", end, start)
    size = loops.apply("div", span if offset else loops.apply("max", span, 1), bins)
    place, inner = (
        loops.cast(loops.count(shape, n), corners.element)
        for shape, n in (((1, 1, bins), 2), ((ratio, 1, 1), 0))
    )
    at = loops.apply("add", loops.apply("mul", place, size), start)
    step = loops.apply("mul", loops.apply("add", inner, 0.5), size)
    return loops.apply("add", at, loops.apply("div", step, ratio))
