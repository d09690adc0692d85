"""Images sampled at computed coordinates, as tensor expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.ir import product
from sabir.loops import INTEGERS, Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.resampling.resampling_lines import kernel
from sabir.opsets.families.windows.tap_kernels import Images, Pixels, combined

if TYPE_CHECKING:
    from sabir.loops import Size, Sizes
    from sabir.opsets.typing import Array

SLOPE = -0.75  # of the cubic kernel
NOISE = 1e-6  # the rounding error of sums of weights: 4.9999999999 is 5 before truncation
FAR = 8  # pixels outside the image: farther coordinates read only padding
REACHES = {
    "nearest": (0, 1),
    "linear": (0, 2),
    "cubic": (-1, 3),
}  # offsets of pixels from the one before a coordinate


def around(at: Expression, size: Size, taps: Array, padding: str, mode: str, *, aligned: bool) -> Pixels:
    """Return the pixels around coordinates (samples) from -1 to 1 along an axis.

    `taps` are the offsets of the pixels from the one before the coordinate.
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
    return Pixels(loops.cast(loops.where(inside, pixels, 0), "int64"), inside, weights)


def _mirrored(at: Expression, low: float, high: Expression) -> Expression:
    """Return coordinates outside the limits mirrored at the limits until they are inside."""
    reach = loops.apply("sub", high, low)
    twice = loops.apply("mul", reach, 2)
    phase = loops.apply("mod", loops.apply("sub", at, low), twice)
    mirrored = loops.apply("add", loops.apply("min", phase, loops.apply("sub", twice, phase)), low)
    outside = loops.apply("or", loops.apply("lt", at, low), loops.apply("gt", at, high))
    found = loops.where(outside, mirrored, at)
    return loops.where(loops.apply("le", reach, 0), low, found)


def truncated(y: Expression, kind: str) -> Expression:
    """Return samples of images of integers, truncated after a correction of rounding errors."""
    whole = loops.apply("round", y)
    close = loops.apply("lt", loops.apply("abs", loops.apply("sub", y, whole)), NOISE)
    return kernels.rounded_to(loops.where(close, whole, loops.apply("trunc", y)), kind)


def grid_sampled(x: Expression, grid: Expression, padding: str, mode: str, *, aligned: bool) -> Expression:
    """Return the images `x` (N, C, ...) at the coordinates in `grid` (N, ..., r), as GridSample."""
    rank = x.rank - 2
    if not loops.equal(x.shape[0], grid.shape[0]) or not loops.equal(grid.shape[-1], rank):
        raise NotLowered("whether the images and the grid match is known at run time only")
    found = _around(x, grid, padding, mode, aligned=aligned)
    if mode == "nearest":
        return _read(x, found, grid.shape[:-1], None)
    loops.check_computed(x.element)
    if x.element == "bool":
        raise NotLowered("flags cannot be interpolated")
    working = loops.cast(x, "double") if x.element in INTEGERS else x
    y = _read(working, found, grid.shape[:-1], found.weights)
    return truncated(y, x.element) if x.element in INTEGERS else y


def _around(x: Expression, grid: Expression, padding: str, mode: str, *, aligned: bool) -> Pixels:
    """Return the pixels [taps, samples] around all samples, image by image."""
    rank, samples = x.rank - 2, product(grid.shape[:-1])
    if samples is None:
        raise NotLowered("the number of samples is too large")
    first, end = REACHES[mode]
    taps = np.indices((end - first,) * rank).reshape(rank, -1) + first
    found: list[Pixels] = []
    for i, size in enumerate(x.shape[2:]):
        at = loops.reshape(loops.narrow(grid, -1, rank - 1 - i, 1), (samples,))
        found.append(around(loops.cast(at, "double"), size, taps[i], padding, mode, aligned=aligned))
    return combined(found, x.shape[2:])


def _read(x: Expression, found: Pixels, shape: Sizes, weights: Expression | None) -> Expression:
    """Return pixels times weights as (N, C, ...); `shape` is the shape of the samples."""
    images = Images.of(x)
    image = None
    if shape[0] != 1:
        each = loops.apply("max", loops.sized("int64", product(shape[1:])), 1)
        image = loops.apply("div", loops.count((1, found.places.shape[1]), 1), each)
    numbers = images.numbers(found, image)
    spread = (numbers.shape[0], *shape)
    numbers, inside = loops.reshape(numbers, spread), loops.reshape(found.inside, spread)
    if weights is None:
        return images.read(numbers, inside, None)
    return images.read(numbers, inside, loops.reshape(loops.cast(weights, x.element), spread))
