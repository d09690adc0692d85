"""Operations of a few instructions: signs, minimum and maximum, comparisons, shifts, roundings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.lanes import fma, where

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.backends.cpu.emit.lanes import Lanes


def absolute(x: Lanes) -> Lanes:
    """Emit |x|; the least integer is unchanged."""
    if x.kind.is_float:
        return abs(x)
    return where(x < 0, -x, x)


def sign(x: Lanes) -> Lanes:
    """Emit -1, 0 or 1; NaN for NaN."""
    positive = where(x > 0, x.like(1), x.like(0))
    return where(x < 0, -1, where(x.is_nan, x, positive) if x.kind.is_float else positive)


def least(a: Lanes, b: Lanes) -> Lanes:
    """Emit the minimum; NaN if one is NaN. With a constant as `b` it is one instruction."""
    y = where(b < a, b, a)  # `a` if one is NaN
    return where(b.is_nan, b, y) if a.kind.is_float else y


def greatest(a: Lanes, b: Lanes) -> Lanes:
    """Emit the maximum; NaN if one is NaN. With a constant as `b` it is one instruction."""
    y = where(b > a, b, a)
    return where(b.is_nan, b, y) if a.kind.is_float else y


def order(x: Lanes) -> Lanes:
    """Emit signed integers in the order of floats: -0 equals 0, NaN is the largest."""
    largest = (1 << x.kind.bits - 1) - 1
    x += 0.0  # -0 becomes 0
    bits = where(x.is_nan, largest, x.bits)
    return where(bits < 0, bits ^ largest, bits)


def unsigned_order(x: Lanes) -> Lanes:
    """Emit unsigned integers in the order of floats."""
    return order(x) ^ (1 << x.kind.bits - 1)


def fused(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Emit a * b + c; floats are rounded once."""
    return fma(a, b, c) if a.kind.is_float else a * b + c


def ordered(predicate: str) -> Callable[[Lanes, Lanes], Lanes]:
    """Return a comparison that is false for NaN; truth values are ordered as 0 and 1."""

    def compare(a: Lanes, b: Lanes) -> Lanes:
        if a.kind.is_float:
            return a.compare(f"fcmp o{predicate}", b)
        return a.compare(f"icmp {'u' if a.kind.bits == 1 else 's'}{predicate}", b)

    return compare


def shift(op: str) -> Callable[[Lanes, Lanes], Lanes]:
    """Return a shift by any count: a count beyond the width, or below 0, shifts all bits out."""

    def shifted(x: Lanes, count: Lanes) -> Lanes:
        last = x.kind.bits - 1
        beyond = count.compare("icmp ugt", last)
        count = where(beyond, last, count)
        if op == "ashr":
            return x >> count  # only copies of the sign remain
        return where(beyond, 0, x << count if op == "shl" else x.unsigned_shift(count))

    return shifted


def rounding(name: str) -> Callable[[Lanes], Lanes]:
    """Return a rounding of floats to integers; integers are unchanged."""
    return lambda x: x.intrinsic(name) if x.kind.is_float else x


def nearest(x: Lanes) -> Lanes:
    """Return the integers nearest to floats below 2**22, ties to even, as int32."""
    return (x + x.format.magic).bits - x.format.pattern(x.format.magic)
