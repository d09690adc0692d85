"""Circular functions and their inverses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit import coefficients as table
from sabir.compilation.backends.cpu.emit.angles import HALF_PI, Angle, reduced
from sabir.compilation.backends.cpu.emit.lanes import fma, polynomial, where

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.lanes import Lanes

_TINY = {"float": 2.0**-13, "double": 2.0**-27}  # below, sin(x) and tan(x) round to x
_MIDDLE = 0.5  # of the sines of asin and acos


def sin(x: Lanes) -> Lanes:
    """Emit the sine."""
    angle = reduced(x)
    sine, cosine = _both(angle)
    y = _flipped(where(_odd(angle.turns), cosine, sine), angle.turns)
    return where(abs(x) < _TINY[x.kind.scalar], x, y)


def cos(x: Lanes) -> Lanes:
    """Emit the cosine."""
    angle = reduced(x)
    sine, cosine = _both(angle)
    return _flipped(where(_odd(angle.turns), sine, cosine), angle.turns + 1)


def tan(x: Lanes) -> Lanes:
    """Emit the tangent."""
    angle = reduced(x)
    sine, cosine = _both(angle)
    odd = _odd(angle.turns)
    y = where(odd, -cosine, sine) / where(odd, sine, cosine)
    return where(abs(x) < _TINY[x.kind.scalar], x, y)


def _odd(turns: Lanes) -> Lanes:
    return (turns & 1).differs(0)


def _flipped(y: Lanes, turns: Lanes) -> Lanes:
    """Return -y after a half turn."""
    sign = (turns & 2) << (y.kind.bits - 2)
    return (y.bits ^ sign).floats(y.format)


def _both(angle: Angle) -> tuple[Lanes, Lanes]:
    """Return the sine and cosine of the reduced angle."""
    _, r, low = angle
    scalar = r.kind.scalar
    z = r * r
    half = z * 0.5
    main = 1.0 - half
    sine = r + fma(low, main, r * z * polynomial(z, table.SIN[scalar]))
    lost = (1.0 - main) - half
    cosine = main + (lost + fma(z * z, polynomial(z, table.COS[scalar]), -(r * low)))
    return sine, cosine


def atan(x: Lanes) -> Lanes:
    """Emit the inverse of tan: the angle of a quotient within tan(pi/8), plus a multiple of pi/4."""
    a = abs(x)
    beyond, middle = a > math.sqrt(2) + 1, a > math.sqrt(2) - 1
    above = where(beyond, -1.0, where(middle, a - 1.0, a))
    below = where(beyond, a, where(middle, a + 1.0, 1.0))
    t = above / below
    z = t * t
    high, low, _ = HALF_PI[x.kind.scalar]
    zero = x.like(0.0)
    offset = where(beyond, high, where(middle, high / 2, zero))
    rest = where(beyond, low, where(middle, low / 2, zero))
    y = fma(t * z, polynomial(z, table.ATAN[x.kind.scalar]), rest) + t
    return (offset + y).signed_as(x)


def asin(x: Lanes) -> Lanes:
    """Emit the inverse of sin; above 1/2 by the inverse sine of sqrt((1 - |x|) / 2)."""
    a = abs(x)
    large, s, odd = _inverse(a)
    high, low, _ = HALF_PI[x.kind.scalar]
    y = fma(s, -2.0, high) + fma(odd, -2.0, low)
    return where(large, y, s + odd).signed_as(x)


def acos(x: Lanes) -> Lanes:
    """Emit the inverse of cos: pi/2 - asin(x); above 1/2 by the root of `asin`, from pi for negative x."""
    large, s, odd = _inverse(abs(x))
    high, low, _ = HALF_PI[x.kind.scalar]
    s, odd = s.signed_as(x), odd.signed_as(x)
    negative = x < 0.0
    small = high - (s - (low - odd))
    twice = s + s
    beyond = where(negative, x.like(2 * high), 0.0) + (
        twice + (odd + odd) + where(negative, x.like(2 * low), 0.0)
    )
    return where(large, beyond, small)


def _inverse(a: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return whether a is above 1/2, the sine s of the angle to compute, and the angle minus s."""
    large = a > _MIDDLE
    z = where(large, (1.0 - a) * 0.5, a * a)
    s = where(large, z.sqrt, a)
    return large, s, s * z * polynomial(z, table.ASIN[a.kind.scalar])
