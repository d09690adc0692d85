"""The exponential function and its kin: exp(x) = 2**n * (1 + q), x = n * ln(2) + r, |r| <= ln(2)/2."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit import coefficients as table
from sabir.compilation.backends.cpu.emit.lanes import (
    clamped,
    fma,
    polynomial,
    power_of_two,
    rounded,
    scaled,
    where,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.lanes import Lanes

LN2_DIGITS = 0.6931471805599453, 2.3190468138462996e-17  # their sum is ln(2) with twice the bits of double
_LOG2E = math.log2(math.e)
# beyond these, exp(x) and exp(x) / 2 are 0 or infinite
_BOUNDS = {"float": (-105.0, 90.0), "double": (-747.0, 711.0)}
_EXP2_BOUNDS = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}
_EXPM1_BOUNDS = {"float": (-20.0, 89.0), "double": (-40.0, 710.0)}
_TANH_BOUND = {"float": 10.0, "double": 20.0}  # tanh is 1 from here
_TANH_MIDDLE = 0.5
_ERF_MIDDLE = 0.92
_ERFC = {"float": (3.93, table.ERFC_FLOAT["float"]), "double": (5.93, table.ERFC_DOUBLE["double"])}


def ln2(x: Lanes) -> tuple[float, float]:
    """Return ln(2) as the sum of two numbers of the type, the first one the nearest."""
    high = x.format.nearest(LN2_DIGITS[0])
    return high, (LN2_DIGITS[0] - high) + LN2_DIGITS[1]


def split(x: Lanes, low: Lanes | None = None, row: Sequence[float] = ()) -> tuple[Lanes, Lanes]:
    """Return the integers n, and q, of exp(x + low); `row` is another polynomial than the type's."""
    n, whole = rounded(x, _LOG2E)
    high, rest = ln2(x)
    r = fma(n, -rest, fma(n, -high, x))  # the inner one is exact
    return whole, fraction(r if low is None else r + low, row)


def fraction(r: Lanes, row: Sequence[float] = ()) -> Lanes:
    """Return exp(r) - 1, |r| <= ln(2)/2."""
    return fma(r * r, polynomial(r, row or table.EXP[r.kind.scalar]), r)


def exp(x: Lanes) -> Lanes:
    """Emit the exponential function."""
    n, q = split(clamped(x, *_BOUNDS[x.kind.scalar]))
    return scaled(q + 1.0, n)


def half_exp(x: Lanes) -> Lanes:
    """Emit exp(x) / 2, which is finite for some x where exp(x) is not."""
    n, q = split(clamped(x, *_BOUNDS[x.kind.scalar]))
    return scaled(q + 1.0, n - 1)


def exp_near(x: Lanes) -> Lanes:
    """Emit exp(x) where that is a normal number."""
    n, q = split(x)
    s = power_of_two(n, x.format)
    return fma(s, q, s)


def exp2(x: Lanes) -> Lanes:
    """Emit 2**x."""
    x = clamped(x, *_EXP2_BOUNDS[x.kind.scalar])
    n, whole = rounded(x, 1.0)
    return scaled(fraction((x - n) * LN2_DIGITS[0]) + 1.0, whole)


def expm1(x: Lanes) -> Lanes:
    """Emit exp(x) - 1, from halves, since exp(x) may be twice what is representable."""
    n, q = split(clamped(x, *_EXPM1_BOUNDS[x.kind.scalar]))
    half = power_of_two(n - 1, x.format)
    y = fma(half, q, half - 0.5)
    return where(abs(x) < 4 * x.format.least, x, y + y)  # keeps the sign of 0, and bits that halving loses


def tanh(x: Lanes) -> Lanes:
    """Emit the hyperbolic tangent: t / (t + 2), t = exp(2|x|) - 1; or 1 - 2 / (t + 2), if more exact."""
    a = abs(x)
    bound = _TANH_BOUND[x.kind.scalar]
    a = where(a > bound, bound, a)
    n, q = split(a + a)
    s = power_of_two(n, x.format)
    large = a > _TANH_MIDDLE
    y = where(large, 2.0, fma(s, q, s - 1.0)) / fma(s, q, s + 1.0)
    return where(large, 1.0 - y, y).signed_as(x)


def sigmoid(x: Lanes) -> Lanes:
    """Emit 1 / (1 + exp(-x)), by exp(-|x|), so that small results are exact."""
    small = exp(-abs(x))
    return where(x < 0.0, small, 1.0) / (small + 1.0)


def sinh(x: Lanes) -> Lanes:
    """Emit the hyperbolic sine: the difference of exponentials above 1, where it cancels little."""
    a = abs(x)
    z = a * a
    small = fma(a * z, polynomial(z, table.SINH[x.kind.scalar]), a)
    half = half_exp(a)
    return where(a > 1.0, half - 0.25 / half, small).signed_as(x)


def cosh(x: Lanes) -> Lanes:
    """Emit the hyperbolic cosine."""
    half = half_exp(abs(x))
    return half + 0.25 / half


def erf(x: Lanes) -> Lanes:
    """Emit the error function: a polynomial near 0; else 1 - exp(p(|x|)), the polynomial p near log(erfc)."""
    a, scalar = abs(x), x.kind.scalar
    z = x * x
    small = fma(x, polynomial(z, table.ERF[scalar]), x)
    end, row = _ERFC[scalar]
    a = where(a > end, end, a)
    large = (1.0 - exp_near(polynomial(a, row))).signed_as(x)
    return where(a > _ERF_MIDDLE, large, small)
