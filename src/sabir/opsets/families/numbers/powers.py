"""Powers: exact on integers, in the base's type, fast for common exponents."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.elements import element
from sabir.loops import NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.casting import converted

if TYPE_CHECKING:
    from sabir.loops import Expression
    from sabir.opsets.typing import Array

_LARGEST_WHOLE = 1 << 31  # float exponents up to here are computed as integers
_MOST_FACTORS = 8  # of a power that kernels compute as a product


def raised(x: Array, y: Array, /) -> Array:
    """Return x to the power y, in x's element type."""
    if x.dtype.kind == "i":
        return _whole(x, y)
    if y.size == 1:
        quick = _by_scalar(widened(x), float(y.item()))
        if quick is not None:
            return quick.astype(x.dtype, copy=False).reshape(np.broadcast_shapes(x.shape, y.shape))
    base, exponent = widened(x), widened(y)
    if base.dtype != exponent.dtype:  # neither type represents the other
        base, exponent = base.astype(np.float64), exponent.astype(np.float64)
    return np.power(base, exponent).astype(x.dtype, copy=False)


def raised_expression(x: Expression, y: Expression, /) -> Expression:
    """Return x to the power y as `raised` computes it; raises NotLowered for most powers of integers."""
    exponent, shape = kernels.known_number(y), loops.broadcast(x.shape, y.shape)
    if not x.is_float:
        return loops.expand(_multiplied(x, exponent), shape)
    if exponent in {1, 2, 3}:
        return loops.expand(_multiplied(x, exponent), shape)
    if exponent is not None and exponent + exponent == 1:
        return loops.expand(_root(x), shape)
    if x.element == y.element:
        return loops.apply("pow", x, y)
    return loops.cast(loops.apply("pow", loops.cast(x, "double"), loops.cast(y, "double")), x.element)


def _multiplied(x: Expression, exponent: float | None) -> Expression:
    """Return a power that is a product of few factors; products of integers wrap."""
    if exponent is None or exponent not in range(_MOST_FACTORS + 1):
        raise NotLowered(f"an exponent of integers is no known number from 0 to {_MOST_FACTORS}")
    if not exponent:
        return kernels.filled(x.element, 1, x.shape)
    return functools.reduce(functools.partial(loops.apply, "mul"), [x] * int(exponent))


def _root(x: Expression) -> Expression:
    root = loops.apply("add", loops.apply("sqrt", x), 0)
    return loops.where(loops.apply("isinf_neg", x), math.inf, root)


def _by_scalar(x: Array, exponent: float) -> Array | None:
    """Return a power that needs no logarithm, or None for any other exponent."""
    match exponent:
        case 2.0:
            return x * x
        case 3.0:
            return x * x * x
        case 1.0:
            return x
        case 0.5:
            root = np.sqrt(x) + x.dtype.type(0)  # unlike the root, the power has no negative zero
            infinite: Array = np.isneginf(x)
            powers: Array = np.where(infinite, np.inf, root).astype(x.dtype)
            return powers
        case _:
            return None


def _whole(x: Array, y: Array) -> Array:
    """Return powers of integers: products wrap, and fractions are truncated toward zero."""
    if y.dtype.kind not in "iu":
        y = y.astype(np.float64)
        if not ((np.trunc(y) == y) & (np.abs(y) < _LARGEST_WHOLE)).all():
            return converted(np.power(x.astype(np.float64), y), element(x.dtype))
    exponents = y.astype(np.int64)
    positive = np.power(x.astype(np.int64), np.maximum(exponents, 0))
    if (exponents >= 0).all():
        return positive.astype(x.dtype)
    odd = (exponents & 1).astype(np.bool_)
    inverse = np.where(x == 0, np.iinfo(x.dtype).min, 0)  # 1 / 0 is infinite, and converts as Cast does
    inverse = np.where(np.abs(x) == 1, np.where(odd, x, 1), inverse)
    return np.where(exponents < 0, inverse, positive).astype(x.dtype)
