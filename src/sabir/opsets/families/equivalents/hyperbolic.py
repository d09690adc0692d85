"""Hyperbolic functions in operators that every opset has, computed in double."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.elements import DOUBLE
from sabir.opsets.families.numbers.scalars import Numbers, element_of

if TYPE_CHECKING:
    from sabir.ir import Builder, Value


def cosine(b: Builder, x: Value, /) -> Value:
    """Emit the hyperbolic cosine of x."""
    return b.Cast(_cosine(b, b.Cast(x, to=DOUBLE.number)), to=element_of(x).number)


def sine(b: Builder, x: Value, /) -> Value:
    """Emit the hyperbolic sine of x: that cosine times the tangent, which is exact near 0."""
    wide = b.Cast(x, to=DOUBLE.number)
    return b.Cast(b.Mul(b.Tanh(wide), _cosine(b, wide)), to=element_of(x).number)


def _cosine(b: Builder, x: Value) -> Value:
    """Halve the exponentials by their exponents, so that none overflows where the sum does not."""
    numbers, size, half = Numbers(b, DOUBLE), b.Abs(x), math.log(2)
    return b.Add(b.Exp(numbers.op("Sub", size, half)), b.Exp(b.Neg(numbers.op("Add", size, half))))
