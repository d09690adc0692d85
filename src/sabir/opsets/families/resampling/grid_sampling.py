"""Images sampled at coordinates from -1 to 1, with interpolation."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError, check_elements
from sabir.opsets.families.resampling.resampling import kernel, saturated
from sabir.opsets.families.resampling.sampling_kernels import FAR, NOISE, REACHES, SLOPE
from sabir.opsets.families.shapes.sizes import allotted, spend_operations
from sabir.schema import Attribute, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.opsets.typing import Array

FIRST_NAMES = {
    "bilinear": "linear",
    "nearest": "nearest",
    "bicubic": "cubic",
}  # names of the modes before opset 20, and since
PADDING_MODE = Attribute(
    "padding_mode",
    "string",
    "The pixels outside: zeros, the nearest pixel (border), or the mirrored image (reflection).",
    default="zeros",
    values=one_of("zeros", "border", "reflection"),
)
BATCH_AND_CHANNELS = 2  # the axes of images before those of pixels

_OPERATIONS = 8  # array operations on one axis for each pixel that is read
_SAMPLES, _CHANNELS = 1 << 13, 32  # read at a time, so that temporaries stay in the cache


def check_ranks(x: Sequence[object], grid: Sequence[object]) -> None:
    """Raise InferenceError where the shapes of images and coordinates do not fit."""
    if len(x) != len(grid) or len(x) <= BATCH_AND_CHANNELS:
        raise InferenceError(f"`X` of rank {len(x)} does not match a grid of rank {len(grid)}")
    if isinstance(grid[-1], int) and grid[-1] != len(x) - BATCH_AND_CHANNELS:
        raise InferenceError(
            f"`grid` has {grid[-1]} coordinates, and the images {len(x) - BATCH_AND_CHANNELS} dimensions"
        )


def sample_grid(x: Array, grid: Array, aligned: bool, padding: str, mode: str) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  an attribute
    """Return the images `x` [N, C, d1, ..., dr] at the coordinates in `grid` [N, D1, ..., Dr, r].

    `mode` is a name of opset 20. Raises InferenceError and ValueError for shapes that do not fit.
    """
    check_ranks(x.shape, grid.shape)
    if x.shape[0] != grid.shape[0]:
        raise ValueError(f"there are {x.shape[0]} images and {grid.shape[0]} grids")
    images, sampled = x.shape[BATCH_AND_CHANNELS:], grid.shape[1:-1]
    count = math.prod(images)
    # one more pixel, at the end, represents all pixels outside
    outside = np.full((*x.shape[:2], 1), "" if x.dtype == object else 0, x.dtype)
    check_elements(x.size + outside.size, x.size, what="the image and its border", width=x.itemsize)
    pixels = np.concatenate([x.reshape(*x.shape[:2], count), outside], axis=-1)
    y = np.empty(allotted((*x.shape[:2], math.prod(sampled)), x.dtype, x.size + grid.size), x.dtype)
    first, last = REACHES[mode]
    corners = (last - first) ** len(images)
    blocks = -(-y.shape[-1] // _SAMPLES) * -(-x.shape[1] // _CHANNELS)
    spend_operations((16 + _OPERATIONS * len(images) * corners) * len(x) * blocks, corners * y.nbytes)
    for n, coordinates in enumerate(grid.reshape(grid.shape[0], y.shape[-1], len(images))):
        for start in range(0, y.shape[-1], _SAMPLES):
            block = slice(start, start + _SAMPLES)
            around = [
                _around(coordinates[block, -1 - d], size, aligned, padding, mode)
                for d, size in enumerate(images)
            ]
            for channel in range(0, x.shape[1], _CHANNELS):
                chosen = slice(channel, channel + _CHANNELS)
                y[n, chosen, block] = _read(pixels[n, chosen], around, images, mode)
    return y.reshape(*x.shape[:2], *sampled)


def _around(coordinates: Array, size: int, aligned: bool, padding: str, mode: str) -> tuple[Array, Array]:  # ruff: ignore[boolean-type-hint-positional-argument]  an attribute
    """Return the pixels around each coordinate along an axis, -1 for outside, and their weights, by rows."""
    wide = coordinates.astype(np.float64)
    at = (wide + 1) / 2 * (size - 1) if aligned else ((wide + 1) * size - 1) / 2
    at = np.rint(at) if mode == "nearest" else at
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    if padding == "reflection":
        at = _mirrored(at, low, high)  # before far coordinates are clipped
    at = np.clip(np.nan_to_num(at, nan=-FAR), -FAR, size + FAR)
    first, last = REACHES[mode]
    pixels: Array = np.floor(at) + np.arange(first, last, dtype=np.float64)[:, None]
    weights = np.ones_like(pixels) if mode == "nearest" else kernel(mode, np.abs(pixels - at), SLOPE)
    if padding == "border":
        pixels = np.clip(pixels, 0, size - 1)
    elif padding == "reflection":
        pixels = _mirrored(pixels, low, high)
    inside = (pixels >= 0) & (pixels <= size - 1)
    return np.where(inside, pixels, -1).astype(np.int64), weights


def _mirrored(at: Array, low: float, high: float) -> Array:
    """Mirror coordinates outside the limits at the limits until they are inside."""
    reach = high - low
    if reach <= 0:
        return np.full_like(at, low)
    with np.errstate(invalid="ignore"):
        phase = np.mod(at - low, 2 * reach)
    return np.where((at < low) | (at > high), np.minimum(phase, 2 * reach - phase) + low, at)


def _read(pixels: Array, around: Sequence[tuple[Array, Array]], images: Sequence[int], mode: str) -> Array:
    """Add the weighted pixels around each coordinate, one after another."""
    if mode == "nearest":
        return np.take(pixels, _flat([p[0] for p, _ in around], images), axis=1)
    if pixels.dtype.kind in "bO":
        raise ValueError("flags and strings cannot be interpolated")
    work = (
        np.dtype(np.float64)
        if pixels.dtype.kind in "iu"
        else np.result_type(pixels.dtype if pixels.dtype.kind in "fc" else np.float32, np.float32)
    )
    y = np.zeros((pixels.shape[0], around[0][0].shape[1]), work)
    for taps in itertools.product(*(range(p.shape[0]) for p, _ in around)):
        chosen = [(p[t], w[t]) for (p, w), t in zip(around, taps, strict=True)]
        weight: Array = math.prod(w for _, w in chosen)  # pyright: ignore[reportAssignmentType] - of arrays
        y += np.take(pixels, _flat([p for p, _ in chosen], images), axis=1) * weight.astype(work)
    if pixels.dtype.kind not in "iu":
        return y.astype(pixels.dtype, copy=False)
    whole = np.rint(y)
    cut = np.where(np.abs(y - whole) < NOISE, whole, np.trunc(y))
    return saturated(cut, pixels.dtype)


def _flat(indices: Sequence[Array], images: Sequence[int]) -> Array:
    """Return flat indices of pixels; the last one represents all pixels outside."""
    number: Array = np.zeros_like(indices[0])
    outside = np.zeros(number.shape, bool)
    for index, size in zip(indices, images, strict=True):
        number = np.asarray(number * size + index)
        outside |= index < 0
    return np.where(outside, math.prod(images), number)
