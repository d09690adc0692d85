"""Logarithms: x = 2**k * (1 + f), with 1 + f from sqrt(1/2) to sqrt(2), and log(1 + f) = f - d."""

from __future__ import annotations

import math

from sabir.compilation.backends.cpu.emit import coefficients as table
from sabir.compilation.backends.cpu.emit.exponentials import exp, ln2
from sabir.compilation.backends.cpu.emit.lanes import Lanes, as_floats, fma, polynomial, product_of, where

_LOG2E = 1.4426950408889634, 2.0355273740931033e-17  # their sum is log2(e) with twice the bits of double
_LARGE = {"float": 2.0**60, "double": 2.0**500}  # their squares are finite; log(x + 1) is log(x)


def parts(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return k as floats, and 1 + f, of positive normal numbers."""
    form = x.format
    root = form.pattern(math.sqrt(0.5))
    shifted = x.bits - root
    mantissa = (shifted & ((1 << form.fraction) - 1)) + root
    return as_floats(shifted >> form.fraction, form), mantissa.floats(form)


def parts_of_any(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return k as floats, and 1 + f, of positive numbers, also of subnormal ones."""
    shift = x.format.fraction + 1
    small = x < x.format.least
    k, m = parts(where(small, x * 2.0**shift, x))
    return where(small, k - shift, k), m


def defect(f: Lanes) -> Lanes:
    """Return d = f - log(1 + f)."""
    square = f * f
    if f.kind.scalar == "float":
        return square * (0.5 - f * polynomial(f, table.LOG_FLAT["float"]))
    half = square * 0.5
    s = f / (f + 2.0)
    z = s * s
    return half - s * fma(z, polynomial(z, table.LOG["double"]), half)


def log(x: Lanes) -> Lanes:
    """Emit the natural logarithm."""
    k, m = parts_of_any(x)
    f = m - 1.0
    high, rest = ln2(x)
    return _checked(x, fma(k, high, f - fma(k, -rest, defect(f))))


def _checked(x: Lanes, y: Lanes) -> Lanes:
    """Return logarithms of any number: infinities of 0 and infinity, NaN of negative numbers."""
    y = where(x < math.inf, y, x)  # infinity or NaN
    y = where(x < 0.0, math.nan, y)
    return where(x.equals(0.0), -math.inf, y)


def log2(x: Lanes) -> Lanes:
    """Emit the binary logarithm, with the rounding error of the product of f and the constant."""
    k, m = parts_of_any(x)
    f = m - 1.0
    high = x.format.nearest(_LOG2E[0])
    main, lost = product_of(f, high)
    rest = fma(f, (_LOG2E[0] - high) + _LOG2E[1], lost)
    return _checked(x, k + (main + fma(defect(f), -high, rest)))


def log1p(x: Lanes, extra: Lanes | None = None) -> Lanes:
    """Emit the logarithm of 1 + x, plus `extra` times ln(2)."""
    u = x + 1.0
    y = where(u < math.inf, _log1p_inside(x, u, extra), u)
    y = where(u < 0.0, math.nan, y)
    return where(u.equals(0.0), -math.inf, y).signed_as(x)


def _log1p_inside(x: Lanes, u: Lanes, extra: Lanes | None = None) -> Lanes:
    """Return log1p where u = 1 + x, rounded, is positive and finite, or NaN."""
    near = u - 1.0
    lost = (1.0 - (u - near)) + (x - near)  # of the sum
    k, m = parts(u)
    whole = k.equals(0.0)
    f = where(whole, x, m - 1.0)  # x itself is exact
    d = defect(f) - where(whole, 0.0, lost / u)
    high, rest = ln2(x)
    k = k if extra is None else k + extra
    return fma(k, high, f - fma(k, -rest, d))


def softplus(x: Lanes) -> Lanes:
    """Emit log(1 + e**x), by exp(-|x|), which does not overflow."""
    small = exp(-abs(x))
    return where(x < 0.0, 0.0, x) + _log1p_inside(small, small + 1.0)


def asinh(x: Lanes) -> Lanes:
    """Emit the inverse of sinh: log1p(a + a*a / (1 + sqrt(a*a + 1))); log(2 * a) for large a."""
    a = abs(x)
    large = a > _LARGE[x.kind.scalar]
    square = a * a
    y = where(large, a, a + square / ((square + 1.0).sqrt + 1.0))
    return log1p(y, where(large, a.like(1.0), 0.0)).signed_as(x)


def acosh(x: Lanes) -> Lanes:
    """Emit the inverse of cosh: log1p(t + sqrt(2t + t*t)), t = x - 1; of large x log(2 * x)."""
    large = x > _LARGE[x.kind.scalar]
    t = x - 1.0
    y = where(large, x, t + fma(t, t, t + t).sqrt)
    return where(x < 1.0, math.nan, log1p(y, where(large, x.like(1.0), 0.0)))


def atanh(x: Lanes) -> Lanes:
    """Emit the inverse of tanh: log1p(2a / (1 - a)) / 2."""
    a = abs(x)
    return (log1p((a + a) / (1.0 - a)) * 0.5).signed_as(x)
