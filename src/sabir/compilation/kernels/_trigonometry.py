"""Circular functions: x = n * pi/2 + r, |r| <= pi/4, with r as a sum of two numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.kernels import _coefficients as table
from sabir.compilation.kernels._emitter import Kind
from sabir.compilation.kernels._lanes import DOUBLE, Lanes, fma, polynomial, product_of, sum_of, where

if TYPE_CHECKING:
    from sabir.compilation.kernels._emitter import Register

_HALF_PI = (  # pi/2 as a sum; each number but the last is the nearest to what is left
    {
        "float": (1.5707963705062866, -4.371138828673793e-08, -1.7151244678265743e-15),
        "double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
    }
)
_TWO_OVER_PI = 2 / math.pi
_REDUCED = {"float": 2.0**17, "double": 2.0**30}  # larger ones need more digits of pi
_TINY = {"float": 2.0**-13, "double": 2.0**-27}  # below, sin(x), tan(x) are x to the last bit


class Angle(NamedTuple):
    """A reduced argument: the number of quarter turns (its two low bits), and the rest as a sum."""

    turns: Lanes
    rest: Lanes
    low: Lanes


def sin(x: Lanes) -> Lanes:
    """Emit sin(x)."""
    angle = _reduced(x)
    sine, cosine = _both(angle)
    y = _flipped(where(_odd(angle.turns), cosine, sine), angle.turns)
    return where(abs(x) < _TINY[x.kind.scalar], x, y)


def cos(x: Lanes) -> Lanes:
    """Emit cos(x)."""
    angle = _reduced(x)
    sine, cosine = _both(angle)
    return _flipped(where(_odd(angle.turns), sine, cosine), angle.turns + 1)


def tan(x: Lanes) -> Lanes:
    """Emit tan(x)."""
    angle = _reduced(x)
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
    """Return sine and cosine of the rest."""
    _, r, low = angle
    scalar = r.kind.scalar
    z = r * r
    half = z * 0.5
    main = 1.0 - half
    sine = r + fma(low, main, r * z * polynomial(z, table.SIN[scalar]))
    lost = (1.0 - main) - half
    cosine = main + (lost + fma(z * z, polynomial(z, table.COS[scalar]), -(r * low)))
    return sine, cosine


def _reduced(x: Lanes) -> Angle:
    """Subtract a multiple of pi/2; lanes with large numbers are done one by one."""
    e, form = x.e, x.format
    first, second, third = _HALF_PI[x.kind.scalar]
    shifted = fma(x, _TWO_OVER_PI, form.magic)
    n = shifted - form.magic
    exact = fma(n, -first, x)
    product, lost = product_of(n, second)
    rest = exact - product
    low = fma(n, -third, (exact - rest) - product) - lost
    large = ~(abs(x) <= _REDUCED[x.kind.scalar])  # NaN too
    parts = [e.variable(v.register) for v in (shifted.bits, rest, low)]
    with e.when(e.any(large.register)), e.loop(e.index(0), e.index(x.kind.lanes)) as place:
        with e.when(_lane(large, place)):
            angle = _of_large(Lanes(e, _lane(x, place)))
            for slot, new in zip(parts, angle, strict=True):
                e.assign(slot, _with_lane(Lanes(e, e.get(slot)), place, new))
    return Angle(*(Lanes(e, e.get(slot)) for slot in parts))


def _of_large(x: Lanes) -> Angle:
    """Reduce one large number."""
    if x.format is DOUBLE:
        return _of_large_double(x)
    angle = _of_large_double(x.convert("fpext", "double"))
    rest = angle.rest.convert("fptrunc", "float")
    low = angle.rest - rest.convert("fpext", "double")
    return Angle(angle.turns.convert("trunc", "i32"), rest, low.convert("fptrunc", "float"))


def _lane(x: Lanes, place: Register) -> Register:
    return x.register if x.kind.lanes == 1 else x.e.lane(x.register, place)


def _with_lane(x: Lanes, place: Register, lane: Lanes) -> Register:
    return lane.register if x.kind.lanes == 1 else x.e.with_lane(x.register, place, lane.register)


def _of_large_double(x: Lanes) -> Angle:
    """Reduce one double above 2**-10 by as many digits of 2/pi as count (Payne and Hanek).

    x = m * 2**s with an integer m of 53 bits. The bits of 2/pi that m * 2**s makes multiples of 4 are left
    out; the next 192 bits times m, without what is above them, are x / (pi/2) modulo 4 with 190 fractional bits.
    """
    e = x.e
    bits = x.bits
    exponent = bits.unsigned_shift(DOUBLE.fraction) & 0x7FF
    start = exponent - (1075 - 62)
    mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
    first, shift = start.unsigned_shift(6), start & 63
    address = e.offset(e.table("i64", table.TWO_OVER_PI), first.register, "i64")
    words = [Lanes(e, e.load(e.offset(address, e.index(i), "i64"), Kind("i64"))) for i in range(4)]
    high, middle, low = (a.intrinsic("fshl", b, shift) for a, b in zip(words, words[1:], strict=False))

    def product(a: Lanes, carry: Lanes | None) -> tuple[Lanes, Lanes]:
        total = a.convert("zext", "i128") * mantissa.convert("zext", "i128")
        if carry is not None:
            total = total + carry.convert("zext", "i128")
        return total.unsigned_shift(64).convert("trunc", "i64"), total.convert("trunc", "i64")

    carry, last = product(low, None)
    carry, second = product(middle, carry)
    top = high * mantissa + carry
    turns = (top + (1 << 61)).unsigned_shift(62)
    fraction, after = top.intrinsic("fshl", second, 2), second.intrinsic("fshl", last, 2)
    # the fraction of a quarter turn as a sum of exact numbers of 32, 32 and 53 bits
    a = (fraction >> 32).convert("sitofp", "double") * 2.0**-32
    b = (fraction & 0xFFFFFFFF).convert("sitofp", "double") * 2.0**-64
    c = after.unsigned_shift(11).convert("sitofp", "double") * 2.0**-117
    main, rest = sum_of(a, b)
    main, rest = sum_of(main, rest + c)
    main = main + (x - x)  # NaN for infinity
    half_pi, digits, _ = _HALF_PI["double"]
    r, lost = product_of(main, half_pi)
    lost = fma(main, digits, fma(rest, half_pi, lost))
    negative = x < 0.0
    return Angle(where(negative, -turns, turns), where(negative, -r, r), where(negative, -lost, lost))


def atan(x: Lanes) -> Lanes:
    """Emit atan(x): by a quotient within tan(pi/8) and the angle that it leaves out."""
    a = abs(x)
    beyond, middle = a > math.sqrt(2) + 1, a > math.sqrt(2) - 1
    above = where(beyond, -1.0, where(middle, a - 1.0, a))
    below = where(beyond, a, where(middle, a + 1.0, 1.0))
    t = above / below
    z = t * t
    high, low, _ = _HALF_PI[x.kind.scalar]
    zero = x.like(0.0)
    offset = where(beyond, high, where(middle, high / 2, zero))
    rest = where(beyond, low, where(middle, low / 2, zero))
    y = fma(t * z, polynomial(z, table.ATAN[x.kind.scalar]), rest) + t
    return (offset + y).signed_as(x)


def asin(x: Lanes) -> Lanes:
    """Emit asin(x): above 1/2, pi/2 - 2 * asin(sqrt((1 - |x|) / 2))."""
    a = abs(x)
    large, s, odd = _inverse(a)
    high, low, _ = _HALF_PI[x.kind.scalar]
    y = fma(s, -2.0, high) + fma(odd, -2.0, low)
    return where(large, y, s + odd).signed_as(x)


def acos(x: Lanes) -> Lanes:
    """Emit acos(x): pi/2 - asin(x); beyond 1/2 by the root as in asin, from pi for negative numbers."""
    large, s, odd = _inverse(abs(x))
    high, low, _ = _HALF_PI[x.kind.scalar]
    s, odd = s.signed_as(x), odd.signed_as(x)
    negative = x < 0.0
    small = high - (s - (low - odd))
    twice = s + s
    beyond = where(negative, x.like(2 * high), 0.0) + (
        twice + (odd + odd) + where(negative, x.like(2 * low), 0.0)
    )
    return where(large, beyond, small)


def _inverse(a: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return where a is large, and the sine s of the angle with what the angle is more than s."""
    large = a > 0.5
    z = where(large, (1.0 - a) * 0.5, a * a)
    s = where(large, z.sqrt, a)
    return large, s, s * z * polynomial(z, table.ASIN[a.kind.scalar])
