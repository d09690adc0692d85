"""Round in operators that every opset has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.opsets.families.numbers.scalars import Numbers

if TYPE_CHECKING:
    from sabir.ir import Builder, Value

_ROUND = 11  # the opset that brought the operator
_HALF = 0.5


def nearest(b: Builder, x: Value) -> Value:
    """Emit Round, or where the opset lacks it what computes the same."""
    return b.Round(x) if b.opset >= _ROUND else rounded(b, x)


def rounded(b: Builder, x: Value) -> Value:
    """Emit the integer above, less 1 where it is further than a half, or a half and odd.

    From above, so that the zeros of negative numbers keep their sign.
    """
    numbers = Numbers.like(b, x)
    above = b.Ceil(x)
    distance = b.Sub(above, x)
    pairs = b.Floor(numbers.op("Mul", above, _HALF))
    odd = numbers.op("Greater", b.Sub(above, numbers.op("Mul", pairs, 2.0)), _HALF)
    tie = b.And(b.Not(numbers.op("Less", distance, _HALF)), odd)
    far = b.Or(numbers.op("Greater", distance, _HALF), tie)
    return b.Sub(above, b.Cast(far, to=numbers.element.number))
