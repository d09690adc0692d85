"""Operators on the bits of integers, as arithmetic of unsigned integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import DOUBLE, INT32, INT64, UINT32, UINT64
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.shapes.extents import unsqueezed

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.elements import ElementType
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import BehaviourFunction

    Rule = Callable[[Builder, Value, Value], Value]

_STEP = 32  # bits; a shift of 64 is two of these


def by_bits(rule: Rule) -> BehaviourFunction:
    """Return the downgrade of a bitwise operator; `rule` combines bits, which are 0 and 1."""

    def downgrade(b: Builder, x: Value, y: Value, /) -> Value:
        kind = element_of(x)
        carrier = UINT32 if kind.bits <= UINT32.bits else UINT64
        places = np.arange(kind.bits, dtype=carrier.dtype)
        above = b.initializer("above", carrier.bits - 1 - places)
        bits = rule(b, *(_bits(b, v, carrier, above) for v in (x, y)))
        weights = b.initializer(
            "weights", np.left_shift(np.uint64(1), places, dtype=np.uint64).view(np.int64)
        )
        total = reductions.call(b, "ReduceSum", b.Mul(bits, weights), [-1], keepdims=0)
        return total if kind is INT64 else b.Cast(total, to=kind.number)

    return downgrade


def both(b: Builder, x: Value, y: Value) -> Value:
    """Emit the bits that are set in both."""
    return b.Mul(x, y)


def either(b: Builder, x: Value, y: Value) -> Value:
    """Emit the bits that are set in at least one."""
    return b.Max(x, y)


def one(b: Builder, x: Value, y: Value) -> Value:
    """Emit the bits that are set in exactly one."""
    return b.Sub(b.Max(x, y), b.Mul(x, y))


def _bits(b: Builder, x: Value, carrier: ElementType, above: Value) -> Value:
    """Return the bits of integers along a new last axis, as int64; `above` counts the bits over each."""
    wide = x if element_of(x) is carrier else b.Cast(x, to=carrier.number)
    highest = b.BitShift(unsqueezed(b, wide, [-1]), above, direction="LEFT")
    bits = b.BitShift(highest, Numbers(b, carrier)(carrier.bits - 1), direction="RIGHT")
    return b.Cast(bits, to=INT64.number)


def shifted(b: Builder, x: Value, y: Value, /, *, direction: str) -> Value:
    """Emit a product with a power of two, or a quotient, of unsigned integers; 64 bits in two steps."""
    kind, powers = element_of(x), b.initializer("powers", 2 ** np.arange(_STEP + 1, dtype=np.uint64))
    wide = x if kind is UINT64 else b.Cast(x, to=UINT64.number)
    counts = b.Cast(y, to=DOUBLE.number)
    numbers = Numbers(b, DOUBLE)
    for step in range(2 if kind is UINT64 else 1):
        count = numbers.op("Sub", counts, float(step * _STEP)) if step else counts
        places = b.Cast(numbers.clipped(count, 0.0, float(_STEP)), to=INT32.number)
        wide = b.op("Mul" if direction == "LEFT" else "Div", wide, b.Gather(powers, places, axis=0))
    return wide if kind is UINT64 else b.Cast(wide, to=kind.number)
