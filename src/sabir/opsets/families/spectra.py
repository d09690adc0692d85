"""Discrete Fourier transforms of numbers whose real part, or both parts, lie in the last dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Expr, add, floor_div, mul, sub
from sabir.opsets.families.arithmetic import widened
from sabir.opsets.families.sizes import allotted

if TYPE_CHECKING:
    from sabir.ir import Dim, TensorType
    from sabir.opsets.typing import Array

REAL, COMPLEX = 1, 2  # sizes of the last dimension


def bins(length: Dim, *, onesided: bool) -> Dim:
    """Return how many frequencies a signal of this length has; one half mirrors the other for a real one."""
    return add(floor_div(length, 2), 1) if onesided else length


def signal_axis(axis: int, rank: int) -> int:
    """Return an axis counted from the front; raises InferenceError outside the axes before the last."""
    if not -rank <= axis < rank - 1 or axis == -1:
        raise InferenceError(f"axis {axis} must be one before the last of a tensor of rank {rank}")
    return axis % rank


def original_length(size: Dim) -> Dim:
    """Return the length of the real signal whose half of a spectrum has this size, taken to be even."""
    return mul(sub(size, 1), 2)


def scalar(t: TensorType | None) -> Dim:
    """Return the one number that a tensor holds, as far as it is known."""
    item = t.known[0] if t is not None and t.known else None
    return item if isinstance(item, (int, Expr)) else None


def signal(x: Array) -> Array:
    """Return the numbers that the last dimension holds the parts of; halves are widened."""
    wide = widened(x)
    if x.shape[-1] == REAL:
        return wide[..., 0]
    if x.shape[-1] != COMPLEX:
        raise ValueError(f"the last dimension holds one or two parts of a number, and is {x.shape[-1]}")
    return wide[..., 0] + 1j * wide[..., 1]


def parts(y: Array, kind: np.dtype[np.generic]) -> Array:
    """Return complex numbers as their parts in a new last dimension, real ones as one part."""
    if y.dtype.kind != "c":
        return y[..., None].astype(kind)
    return np.stack([np.real(y), np.imag(y)], axis=-1).astype(kind)


def transform(x: Array, length: int, axis: int, *, onesided: bool) -> Array:
    """Return the spectrum of a signal, cut or filled up with zeros to a length."""
    make_room(x, length, axis)
    if x.dtype.kind != "c" and onesided:
        return np.fft.rfft(x, length, axis)
    y = np.fft.fft(x, length, axis)
    return np.take(y, np.arange(length // 2 + 1), axis) if onesided else y


def make_room(x: Array, length: int, axis: int) -> None:
    """Make sure that a spectrum of this length may be made; raises LimitError, ValueError for none."""
    if length < 1:
        raise ValueError(f"there is no transform of length {length}")
    shape = [length if i == axis % x.ndim else d for i, d in enumerate(x.shape)]
    allotted(shape, np.dtype(np.complex128), x.size)
