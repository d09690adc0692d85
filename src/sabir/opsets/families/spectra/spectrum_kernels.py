"""Fourier transforms of known lengths as products with a matrix of sines and cosines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.elements import element
from sabir.loops import FLOATS, NotLowered
from sabir.opsets.families.spectra import spectra

if TYPE_CHECKING:
    from sabir.loops import Expression, Size
    from sabir.opsets.typing import Array

_MOST = 1 << 20  # elements of a matrix; a longer transform is faster as an FFT


def transformed(
    x: Expression, axis: int, length: Size | None, *, inverse: bool, onesided: bool
) -> Expression:
    """Return DFT of `x`, whose last axis has the parts of complex numbers."""
    along = spectra.signal_axis(axis, x.rank)
    size, parts = x.shape[along], x.shape[-1]
    if length is None:
        length = spectra.original_length(size) if inverse and onesided else size
    if not isinstance(size, int) or not isinstance(length, int) or not isinstance(parts, int):
        raise NotLowered("the length of the transform is known at run time only")
    if length < 1 or parts not in {spectra.REAL, spectra.COMPLEX} or 0 in x.shape:
        raise NotLowered("the signal, or its transform, has no elements")
    if onesided and (parts == spectra.COMPLEX) != inverse:
        raise NotLowered("`onesided` is for real signals and their spectra")
    matrix = _matrix(
        min(size, _read(length, half=inverse and onesided)), parts, length, inverse=inverse, onesided=onesided
    )
    x = loops.narrow(x, along, 0, matrix.shape[0])
    order = [*(a for a in range(x.rank - 1) if a != along), along, x.rank - 1]
    moved = loops.permute(x, order)
    depth = matrix.shape[0] * parts
    rows = loops.reshape(moved, (*moved.shape[:-2], depth))
    y = _product(rows, matrix.reshape(depth, -1))
    y = loops.reshape(y, (*moved.shape[:-2], *matrix.shape[2:]))
    return loops.permute(y, [order.index(a) for a in range(x.rank)])


def _read(length: int, *, half: bool) -> int:
    """Return how many numbers a transform reads."""
    return length // 2 + 1 if half else length


def _product(rows: Expression, matrix: Array) -> Expression:
    loops.check_computed(rows.element)
    if rows.element not in FLOATS:
        raise NotLowered("the signal is no tensor of floats")
    table = loops.tensor(np.ascontiguousarray(matrix, element(rows.element).dtype))
    if rows.rank > 1:
        return loops.contract(rows, table)
    return loops.squeeze(loops.contract(loops.reshape(rows, (1, *rows.shape)), table), [0])


def _matrix(size: int, parts: int, length: int, *, inverse: bool, onesided: bool) -> Array:
    """Return the matrix of the transform: [numbers, parts, results, parts]."""
    real = inverse and onesided
    results = spectra.bins(length, onesided=onesided and not inverse)
    results = results if isinstance(results, int) else 0
    if size * parts * results * 2 > _MOST:
        raise NotLowered("the matrix of the transform is very large")
    angle = np.outer(np.arange(size), np.arange(results)) % length * (math.tau / length)
    cosine, sine = np.cos(angle), np.sin(angle) * (1 if inverse else -1)
    scale = np.full((size, 1), 1 / length if inverse else 1.0)
    if real:  # the frequencies between the first and the last also represent their mirrored ones
        last = [length // 2] if length % 2 == 0 else []
        scale[[n for n in range(size) if n not in {0, *last}]] *= 2
        found = np.stack([cosine * scale, -sine * scale], axis=1)[..., None]
        for n in {0, *last} & set(range(size)):
            found[n, 1] = 0
        return found
    of_real = np.stack([cosine, sine], axis=-1) * scale[..., None]
    if parts == spectra.REAL:
        return of_real[:, None]
    return np.stack([of_real, np.stack([-sine, cosine], axis=-1) * scale[..., None]], axis=1)


def framed(
    signal: Expression, step: int, frame: int, frames: Size, window: Array | Expression | None, *,
    onesided: bool,
) -> Expression:  # fmt: skip
    """Return the spectra of overlapping frames of signals [B, T, parts], as STFT."""
    parts = loops.fixed(signal.shape[2])
    if parts not in {spectra.REAL, spectra.COMPLEX}:
        raise NotLowered("whether the numbers have one part or two is known at run time only")
    matrix = _matrix(frame, parts, frame, inverse=False, onesided=onesided)
    if isinstance(window, np.ndarray):
        matrix *= window.reshape(-1, 1, 1, 1)
    found = loops.windows(signal, [1], [frame], [frames], [step], [1])
    found = loops.permute(found, (0, 1, 3, 2))
    if window is not None and not isinstance(window, np.ndarray):
        found = loops.apply("mul", found, loops.reshape(window, (frame, 1)))
    batch, results = signal.shape[0], matrix.shape[2]
    if parts == spectra.REAL:
        y = _product(loops.squeeze(found, [3]), matrix.reshape(frame, -1))
    else:
        y = _product(loops.reshape(found, (batch, frames, frame * parts)), matrix.reshape(frame * parts, -1))
    return loops.reshape(y, (batch, frames, results, 2))
