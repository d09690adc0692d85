"""Real numbers as integers with scales: one scale for each block, or for each channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Array

_CHUNK = 1 << 20  # weights that are quantized at a time, which bounds the memory of the intermediate arrays
_SEARCHED_BITS = 4  # up to here clipping the largest weights lowers the error of a block
_CLIPPING = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)  # candidates: the part of the range that the integers cover


class Codes(NamedTuple):
    """Integers with `(integers - zero) * scale` near the real numbers.

    `integers` has the shape of the real numbers; `scale` and `zero` have the shape that DequantizeLinear
    expects for `axis` and `block_size`, which is 0 where each index of the axis has a scale of its own.
    `zero` is None for signed integers, which are symmetric. `error` is the root of the mean squared error,
    divided by the root of the mean square.
    """

    integers: Array
    scale: Array
    zero: Array | None
    axis: int
    block_size: int
    error: float


def codes_of_blocks(weights: Array, axis: int, block: int, to: ElementType) -> Codes:
    """Return weights as integers with a scale for each `block` of elements along an axis.

    Integers of a signed type are symmetric; those of an unsigned type have a zero point for each block. The
    last block of an axis may be shorter.
    """
    moved = np.moveaxis(weights, axis, -1)
    size = moved.shape[-1]
    count = -(-size // block)
    rows = moved.reshape(-1, size)
    padded = np.pad(rows, ((0, 0), (0, count * block - size))) if count * block != size else rows
    found = _codes_of_rows(padded.reshape(-1, block), to, weights.dtype)

    def back(array: Array, last: int) -> Array:
        return np.ascontiguousarray(np.moveaxis(array.reshape(*moved.shape[:-1], last), -1, axis))

    whole = found.integers.reshape(len(rows), -1)[:, :size]
    zero = None if found.zero is None else back(found.zero, count)
    return Codes(back(whole, size), back(found.scale, count), zero, axis, block, found.error)


def codes_of_channels(weights: Array, axis: int, to: ElementType) -> Codes:
    """Return weights as integers with a scale for each index of an axis."""
    moved = np.moveaxis(weights, axis, 0)
    found = _codes_of_rows(moved.reshape(len(moved), -1), to, weights.dtype)
    integers = np.ascontiguousarray(np.moveaxis(found.integers.reshape(moved.shape), 0, axis))
    return Codes(integers, found.scale, found.zero, axis, 0, found.error)


class _Rows(NamedTuple):
    integers: Array
    scale: Array
    zero: Array | None
    error: float


def _codes_of_rows(rows: Array, to: ElementType, precision: np.dtype[np.generic]) -> _Rows:
    """Quantize each row with its own scale, which is rounded to `precision` first."""
    integers = np.empty(rows.shape, to.dtype)
    scale = np.empty(len(rows), precision)
    zero = None if to.is_signed else np.empty(len(rows), to.dtype)
    lost = total = 0.0
    step = max(1, _CHUNK // max(1, rows.shape[1]))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        wide = rows[part].astype(np.float32)
        scales, zeros = _best_parameters(wide, to, precision)
        coded = _coded(wide, scales, zeros, to)
        lost += float(_squared_errors(wide, coded, scales, zeros).sum())
        total += float(np.square(wide).sum())
        scale[part] = scales
        integers[part] = coded.astype(np.int32).astype(to.dtype)
        if zero is not None:
            zero[part] = zeros.astype(np.int32).astype(to.dtype)
    return _Rows(integers, scale, zero, (lost / total) ** 0.5 if total else 0.0)


def _best_parameters(rows: Array, to: ElementType, precision: np.dtype[np.generic]) -> tuple[Array, Array]:
    """Return the scale and the zero point of each row with the least squared error."""
    candidates = _CLIPPING if to.bits <= _SEARCHED_BITS else _CLIPPING[:1]
    scales, zeros = _parameters(rows, candidates[0], to, precision)
    if len(candidates) == 1:
        return scales, zeros
    least = _squared_errors(rows, _coded(rows, scales, zeros, to), scales, zeros)
    for clipping in candidates[1:]:
        other_scales, other_zeros = _parameters(rows, clipping, to, precision)
        coded = _coded(rows, other_scales, other_zeros, to)
        errors = _squared_errors(rows, coded, other_scales, other_zeros)
        better = errors < least
        scales, zeros = np.where(better, other_scales, scales), np.where(better, other_zeros, zeros)
        least = np.minimum(errors, least)
    return scales, zeros


def _parameters(
    rows: Array, clipping: float, to: ElementType, precision: np.dtype[np.generic]
) -> tuple[Array, Array]:
    levels = (1 << to.bits) - 1
    low = np.minimum(rows.min(axis=1, initial=0), 0) * clipping
    high = np.maximum(rows.max(axis=1, initial=0), 0) * clipping
    if to.is_signed:
        scales = _usable(np.maximum(-low, high) / (levels // 2), precision)
        return scales, np.zeros_like(scales)
    scales = _usable((high - low) / levels, precision)
    return scales, np.clip(np.rint(-low / scales), 0, levels)


def _usable(scales: Array, precision: np.dtype[np.generic]) -> Array:
    """Round scales to the precision in which they are stored; 1 stands for those that become 0."""
    rounded = scales.astype(precision).astype(np.float32)
    return np.where(rounded > 0, rounded, np.float32(1))


def _coded(rows: Array, scales: Array, zeros: Array, to: ElementType) -> Array:
    """Return the integers of the rows, as float32."""
    most = (1 << to.bits - 1) - 1 if to.is_signed else (1 << to.bits) - 1
    least = -most if to.is_signed else 0
    return np.clip(np.rint(rows / scales[:, None]) + zeros[:, None], least, most)


def _squared_errors(rows: Array, coded: Array, scales: Array, zeros: Array) -> Array:
    return np.square((coded - zeros[:, None]) * scales[:, None] - rows).sum(axis=1)
