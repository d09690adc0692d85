"""Images sampled at computed coordinates, as tensor expressions: a few pixels times weights for each sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir import loops
from sabir.ir import product
from sabir.loops import INTEGERS, Expression, NotLowered
from sabir.opsets.families import kernels
from sabir.opsets.families.resampling_lines import kernel
from sabir.opsets.families.tap_kernels import weighted
from sabir.opsets.families.window_kernels import channels_first, channels_last

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Size, Sizes
    from sabir.opsets.typing import Array

SLOPE = -0.75  # of the cubic kernel
NOISE = 1e-6  # the rounding error of sums of weights: 4.9999999999 is 5 before truncation
FAR = 8  # pixels outside the image: farther coordinates read only padding
REACHES = {"nearest": (0, 1), "linear": (0, 2), "cubic": (-1, 3)}  # pixels from that before a coordinate
_FEW = 8  # channels, below which neighbouring samples are computed side by side
_MOST = 1 << 31


class Pixels(NamedTuple):
    """The pixels [taps, samples] along one axis of images, in double, which are inside, and their weights."""

    places: Expression
    inside: Expression
    weights: Expression


def around(
    at: Expression, size: Size, taps: Array, padding: str, mode: str, *, aligned: bool
) -> Pixels:
    """Return the pixels around coordinates (samples) from -1 to 1 along an axis.

    `taps` has the distance of each from the pixel before the coordinate.
    """
    length = loops.sized("double", size)
    last = loops.apply("sub", length, 1)
    at = loops.apply("add", at, 1)
    if aligned:
        at = loops.apply("mul", loops.apply("div", at, 2), last)
    else:
        at = loops.apply("div", loops.apply("sub", loops.apply("mul", at, length), 1), 2)
    at = loops.apply("round", at) if mode == "nearest" else at
    low, high = (0.0, last) if aligned else (-0.5, loops.apply("sub", length, 0.5))
    if padding == "reflection":
        at = _mirrored(at, low, high)
    at = loops.where(loops.apply("isnan", at), -FAR, at)
    at = loops.apply("min", loops.apply("max", at, -FAR), loops.apply("add", length, FAR))
    tap = loops.tensor(taps.astype(np.float64).reshape(-1, 1))
    pixels = loops.apply("add", loops.apply("floor", at), tap)
    distance = loops.apply("abs", loops.apply("sub", pixels, at))
    weights = distance if mode == "nearest" else kernel(mode, distance, SLOPE)
    if padding == "border":
        pixels = loops.apply("min", loops.apply("max", pixels, 0), last)
    elif padding == "reflection":
        pixels = _mirrored(pixels, low, high)
    inside = loops.apply("and", loops.apply("ge", pixels, 0), loops.apply("le", pixels, last))
    return Pixels(pixels, inside, weights)


def _mirrored(at: Expression, low: float, high: Expression) -> Expression:
    """Return coordinates outside the limits mirrored at the limits until they are inside."""
    reach = loops.apply("sub", high, low)
    twice = loops.apply("mul", reach, 2)
    turn = loops.apply("mod", loops.apply("sub", at, low), twice)
    mirrored = loops.apply("add", loops.apply("min", turn, loops.apply("sub", twice, turn)), low)
    outside = loops.apply("or", loops.apply("lt", at, low), loops.apply("gt", at, high))
    found = loops.where(outside, mirrored, at)
    return loops.where(loops.apply("le", reach, 0), low, found)


def sampled(x: Expression, found: Sequence[Pixels], shape: Sizes, mode: str) -> Expression:
    """Return the images `x` (N, C, ...) at pixels as (N, C, ...).

    `shape` is that of the result without C; `found` has the samples of all images, one after the other.
    """
    places, weights = _combined(found, x.shape[2:])
    few = isinstance(x.shape[1], int) and x.shape[1] < _FEW
    flat = _pixels_last(x) if few else _channels_last(x)
    axis = 1 if few else 0
    y = _weighted(flat, axis, _numbered(places, x, shape), None if mode == "nearest" else weights)
    if few:
        return loops.permute(loops.reshape(y, (x.shape[1], *shape)), (1, 0, *range(2, x.rank)))
    return channels_first(loops.reshape(y, (*shape, x.shape[1])))


def _weighted(flat: Expression, axis: int, places: Expression, weights: Expression | None) -> Expression:
    if weights is None:
        return loops.take(flat, loops.squeeze(places, [0]), axis)
    return weighted(flat, axis, places, weights)


def _combined(found: Sequence[Pixels], sizes: Sizes) -> tuple[Expression, Expression]:
    """Return the pixels around each sample by their numbers in an image, negative outside, and weights."""
    number, inside, weight = found[0]
    for along, size in zip(found[1:], sizes[1:], strict=True):
        inside = loops.apply("and", inside, along.inside)
        number = loops.apply("add", loops.apply("mul", number, loops.sized("double", size)), along.places)
        weight = loops.apply("mul", weight, along.weights)
    return loops.cast(loops.where(inside, number, -1), "int64"), weight


def _numbered(places: Expression, x: Expression, shape: Sizes) -> Expression:
    """Return the numbers of pixels among those of all images; what follows the last is outside."""
    every, pixels = product((x.shape[0], *x.shape[2:])), product(x.shape[2:])
    numbers = places
    if shape[0] != 1:
        each = loops.apply("max", loops.sized("int64", product(shape[1:])), 1)
        image = loops.apply("div", loops.count((1, places.shape[1]), 1), each)
        numbers = loops.apply("add", places, loops.apply("mul", image, loops.sized("int64", pixels)))
    found = loops.where(loops.apply("lt", places, 0), loops.sized("int64", every), numbers)
    return loops.cast(found, "int32") if isinstance(every, int) and every < _MOST else found


def _pixels_last(x: Expression) -> Expression:
    """Return the pixels of all images as (C, pixels), with one more, of zeros."""
    pixels = product((x.shape[0], *x.shape[2:])) or 0
    flat = loops.reshape(loops.permute(x, (1, 0, *range(2, x.rank))), (x.shape[1], pixels))
    return loops.pad(flat, (0, 0), (0, 1), 0)


def _channels_last(x: Expression) -> Expression:
    """Return the pixels of all images as (pixels, C), with one more, of zeros."""
    pixels = product((x.shape[0], *x.shape[2:])) or 0
    return loops.pad(loops.reshape(channels_last(x), (pixels, x.shape[1])), (0, 0), (1, 0), 0)


def truncated(y: Expression, kind: str) -> Expression:
    """Return samples of images of integers: cut off, but for what is a whole number but for rounding."""
    whole = loops.apply("round", y)
    close = loops.apply("lt", loops.apply("abs", loops.apply("sub", y, whole)), NOISE)
    return kernels.rounded_to(loops.where(close, whole, loops.apply("trunc", y)), kind)


def grid_sampled(x: Expression, grid: Expression, padding: str, mode: str, *, aligned: bool) -> Expression:
    """Return the images `x` (N, C, ...) at the coordinates in `grid` (N, ..., r), as GridSample does it."""
    rank = x.rank - 2
    if not loops.equal(x.shape[0], grid.shape[0]) or not loops.equal(grid.shape[-1], rank):
        raise NotLowered("whether the images and the grid match is open")
    shape = grid.shape[:-1]
    samples = product(shape)
    if samples is None:
        raise NotLowered("the number of samples is too large")
    first, end = REACHES[mode]
    taps = np.indices((end - first,) * rank).reshape(rank, -1) + first
    found: list[Pixels] = []
    for i, size in enumerate(x.shape[2:]):
        at = loops.reshape(loops.narrow(grid, -1, rank - 1 - i, 1), (samples,))
        found.append(around(loops.cast(at, "double"), size, taps[i], padding, mode, aligned=aligned))
    if mode == "nearest":
        return sampled(x, found, shape, mode)
    loops.check_computed(x.element)
    if x.element == "bool":
        raise NotLowered("flags cannot be interpolated")
    y = sampled(loops.cast(x, "double") if x.element in INTEGERS else x, found, shape, mode)
    return truncated(y, x.element) if x.element in INTEGERS else y
