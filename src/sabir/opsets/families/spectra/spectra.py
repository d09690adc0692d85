"""Discrete Fourier transforms of numbers whose real part, or both parts, are in the last dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Expr, add, floor_div, mul, sub
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.sizes import allotted

if TYPE_CHECKING:
    from sabir.ir import Dim, TensorType
    from sabir.opsets.typing import Array

REAL, COMPLEX = 1, 2  # sizes of the last dimension


def bins(length: Dim, *, onesided: bool) -> Dim:
    """Return the number of frequencies of a signal; the second half of a real signal's mirrors the first."""
    return add(floor_div(length, 2), 1) if onesided else length


def signal_axis(axis: int, rank: int) -> int:
    """Return an axis counted from the front; raises InferenceError for the last axis and beyond."""
    if not -rank <= axis < rank - 1 or axis == -1:
        raise InferenceError(f"axis {axis} must be before the last of a tensor of rank {rank}")
    return axis % rank


def original_length(size: Dim) -> Dim:
    """Return the length of the real signal, taken as even, whose one-sided spectrum has this size."""
    return mul(sub(size, 1), 2)


def scalar(t: TensorType | None) -> Dim:
    """Return the only element of a tensor, if it is known."""
    item = t.known[0] if t is not None and t.known else None
    return item if isinstance(item, (int, Expr)) else None


def signal(x: Array) -> Array:
    """Return the numbers whose parts are in the last dimension; 16-bit floats are widened."""
    wide = widened(x)
    if x.shape[-1] == REAL:
        return wide[..., 0]
    if x.shape[-1] != COMPLEX:
        raise ValueError(f"the last dimension must be 1 (real) or 2 (complex), and is {x.shape[-1]}")
    return wide[..., 0] + 1j * wide[..., 1]


def parts(y: Array, kind: np.dtype[np.generic]) -> Array:
    """Return the parts of complex numbers, or the one part of real numbers, in a new last dimension."""
    if y.dtype.kind != "c":
        return y[..., None].astype(kind)
    return np.stack([np.real(y), np.imag(y)], axis=-1).astype(kind)


def transform(x: Array, length: int, axis: int, *, onesided: bool) -> Array:
    """Return the spectrum of a signal that is truncated or padded with zeros to a length."""
    make_room(x, length, axis)
    if x.dtype.kind != "c" and onesided:
        return np.fft.rfft(x, length, axis)
    y = np.fft.fft(x, length, axis)
    return np.take(y, np.arange(length // 2 + 1), axis) if onesided else y


def make_room(x: Array, length: int, axis: int) -> None:
    """Raise LimitError for a spectrum that is too large, ValueError for a length below 1."""
    if length < 1:
        raise ValueError(f"the length of a transform must be 1 or more, and is {length}")
    shape = [length if i == axis % x.ndim else d for i, d in enumerate(x.shape)]
    allotted(shape, np.dtype(np.complex128), x.size)
