"""Reduction of angles: x = n * pi/2 + r, |r| <= pi/4, with r as a sum of two numbers."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.coefficients import TWO_OVER_PI
from sabir.compilation.backends.cpu.emit.emitter import Kind
from sabir.compilation.backends.cpu.emit.lanes import DOUBLE, Lanes, Long, fma, product_of, sum_of, where

if TYPE_CHECKING:
    from collections.abc import Sequence

HALF_PI = {  # pi/2 as a sum; each number is the nearest to the remainder
    "float": (1.5707963705062866, -4.371138828673793e-08, -1.7151244678265743e-15),
    "double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
}
_PRODUCTS = {"float": 2.0**17, "double": 2.0**30}  # larger angles need more digits of pi
_INTEGER = (
    -1075
)  # the value of a double is its significand as an integer times 2**(its exponent field - 1075)
_ZEROS = 64  # zero bits in the table before 2/pi


class Angle(NamedTuple):
    """A reduced angle: the number n of quarter turns, modulo 4, and the rest as a sum of two numbers."""

    turns: Lanes
    rest: Lanes
    low: Lanes


def reduced(x: Lanes) -> Angle:
    """Subtract a multiple of pi/2 (Cody and Waite); lanes with large angles are reduced one by one."""
    e, form = x.e, x.format
    first, second, third = HALF_PI[form.scalar]
    shifted = fma(x, 2 / math.pi, form.magic)
    n = shifted - form.magic
    exact = fma(n, -first, x)
    product, lost = product_of(n, second)
    rest = exact - product
    low = fma(n, -third, (exact - rest) - product) - lost
    large = ~(abs(x) <= _PRODUCTS[form.scalar])  # NaN too
    slots = [e.variable(part.register) for part in (shifted.bits, rest, low)]
    with (
        e.when(e.any(large.register)),
        e.loop(e.index(0), e.index(x.kind.lanes)) as place,
        e.when(e.lane(large.register, place)),
    ):
        for slot, part in zip(slots, _of_large(Lanes(e, e.lane(x.register, place))), strict=True):
            e.assign(slot, e.with_lane(e.get(slot), place, part.register))
    return Angle(*(Lanes(e, e.get(slot)) for slot in slots))


def _of_large(x: Lanes) -> Angle:
    """Reduce one large angle."""
    if x.format is DOUBLE:
        return _of_large_double(x)
    turns, exact, _ = _of_large_double(x.convert("fpext", "double"))
    rest = exact.convert("fptrunc", "float")
    low = (exact - rest.convert("fpext", "double")).convert("fptrunc", "float")
    return Angle(turns.convert("trunc", "i32"), rest, low)


def _of_large_double(x: Lanes) -> Angle:
    """Reduce one large double with the digits of 2/pi that its exponent needs (Payne and Hanek)."""
    significand = (x.bits & ((1 << DOUBLE.fraction) - 1)) | (1 << DOUBLE.fraction)
    top, second, last = _product(significand, _window(x))
    turns = (top + (1 << 61)).unsigned_shift(62)
    fraction = top.intrinsic("fshl", second, 2), second.intrinsic("fshl", last, 2)
    turn = _as_sum(*fraction)
    high, low, _ = HALF_PI["double"]
    rest, less = Long(turn.high + (x - x), turn.low).times((high, low))  # NaN for infinity
    negative = x < 0.0
    return Angle(where(negative, -turns, turns), where(negative, -rest, rest), where(negative, -less, less))


def _window(x: Lanes) -> list[Lanes]:
    """Return the 192 bits of 2/pi that matter for a double above 2**-10, in three words.

    The double is an integer m times 2**s. Bits of 2/pi that are multiples of 4 when shifted by s are omitted:
    they add whole turns. The first two bits of the product are the quarter turns.
    """
    e = x.e
    exponent = x.bits.unsigned_shift(DOUBLE.fraction) & (2 * DOUBLE.bias + 1)
    start = exponent + (_INTEGER + _ZEROS - 2)
    address = e.offset(e.table("i64", TWO_OVER_PI), start.unsigned_shift(6).register, "i64")
    words = [Lanes(e, e.load(e.offset(address, e.index(i), "i64"), Kind("i64"))) for i in range(4)]
    return [a.intrinsic("fshl", b, start & 63) for a, b in itertools.pairwise(words)]


def _product(factor: Lanes, words: Sequence[Lanes]) -> list[Lanes]:
    """Return the product of a word and a number of several words, modulo as many words."""
    wide = factor.convert("zext", "i128")
    carry, result = factor.like(0), list[Lanes]()
    for word in reversed(words):
        total = word.convert("zext", "i128") * wide + carry.convert("zext", "i128")
        carry = total.unsigned_shift(64).convert("trunc", "i64")
        result.insert(0, total.convert("trunc", "i64"))
    return result


def _as_sum(first: Lanes, second: Lanes) -> Long:
    """Return the signed fraction in two words as a sum; parts of 32, 32 and 53 bits are exact."""
    a = (first >> 32).convert("sitofp", "double") * 2.0**-32
    b = (first & (2**32 - 1)).convert("sitofp", "double") * 2.0**-64
    c = second.unsigned_shift(11).convert("sitofp", "double") * 2.0**-117
    high, low = sum_of(a, b)
    return Long(*sum_of(high, low + c))
