"""Powers: exact on integers, in the base's type, fast for the exponents that models use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.elements import element
from sabir.opsets.families.casting import converted

if TYPE_CHECKING:
    from sabir.opsets.typing import Array

_SINGLE_BYTES = 4


def raised(x: Array, y: Array, /) -> Array:
    """Return x to the power y, in x's element type."""
    if x.dtype.kind == "i":
        return _whole(x, y)
    if y.size == 1:
        quick = _by_scalar(x, float(y.reshape(()).astype(np.float64)))
        if quick is not None:
            return quick.reshape(np.broadcast_shapes(x.shape, y.shape))
    wide = _wide(x, y)
    return np.power(x.astype(wide), y.astype(wide)).astype(x.dtype)


def _wide(x: Array, y: Array) -> Any:
    """Return the type to compute in: the base's own, or one that holds the exponent exactly."""
    if x.dtype == y.dtype:
        return x.dtype if x.dtype.itemsize >= _SINGLE_BYTES else np.float32
    both_small = x.dtype.itemsize < _SINGLE_BYTES and y.dtype.itemsize < _SINGLE_BYTES
    return np.float32 if both_small else np.float64


def _by_scalar(x: Array, exponent: float) -> Array | None:
    """Return x to one of the powers that need no logarithm, or None."""
    wide = x if x.dtype.itemsize >= _SINGLE_BYTES else x.astype(np.float32)
    if exponent == 2:  # noqa: PLR2004 - the square
        powers = wide * wide
    elif exponent == 3:  # noqa: PLR2004 - the cube
        powers = wide * wide * wide
    elif exponent == 1:
        powers = wide
    elif exponent == 0.5 and not np.isneginf(wide).any():  # noqa: PLR2004 - the root; the power of -inf is +inf
        powers = np.sqrt(wide) + wide.dtype.type(0)  # no negative zero
    else:
        return None
    return powers.astype(x.dtype, copy=False)


def _whole(x: Array, y: Array) -> Array:
    """Return powers of integers: wrapped like products of them, and cut toward zero where they are no integers."""
    if y.dtype.kind not in "iu":
        exponents = y.astype(np.float64)
        if not ((np.trunc(exponents) == exponents) & (np.abs(exponents) < 1 << 31)).all():
            return converted(np.power(x.astype(np.float64), exponents), element(x.dtype))
        y = exponents.astype(np.int64)
    exponents = y.astype(np.int64)
    positive = np.power(x.astype(np.int64), np.maximum(exponents, 0))
    if (exponents >= 0).all():
        return positive.astype(x.dtype)
    odd = (exponents & 1).astype(np.bool_)
    inverse = np.where(np.abs(x) == 1, np.where(odd, x, 1), np.where(x == 0, np.iinfo(x.dtype).min, 0))
    return np.where(exponents < 0, inverse, positive).astype(x.dtype)
