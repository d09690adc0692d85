"""Conversion between element types as tensor expressions, with the results of `converted` in `casting`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir import loops
from sabir.elements import FLOAT8E8M0, element
from sabir.opsets.families.numbers.casting import FLOAT8

if TYPE_CHECKING:
    from sabir.loops import Expression

_FRACTION = 52  # bits of a double
_LEAST_POWER, _GREATEST_POWER = 2.0**-127, 2.0**127


def converted(x: Expression, to: str, *, saturate: bool = True, round_mode: str = "up") -> Expression:
    """Return `x` with its elements as `to`; `saturate` concerns the 8-bit floats, `round_mode` float8e8m0."""
    kind = element(to)
    if x.element == to:
        return x
    if kind is FLOAT8E8M0:
        return loops.cast(_power(loops.cast(x, "double"), saturate=saturate, round_mode=round_mode), to)
    if kind not in FLOAT8 or not saturate:
        return loops.cast(x, to)
    most = FLOAT8[kind]
    return loops.cast(_limited(loops.cast(x, "float"), -most, most), to)


def _limited(x: Expression, low: float, high: float) -> Expression:
    """Return numbers clamped to limits; NaN is unchanged."""
    x = loops.where(loops.apply("lt", x, low), low, x)
    return loops.where(loops.apply("gt", x, high), high, x)


def _power(x: Expression, *, saturate: bool, round_mode: str) -> Expression:
    """Return doubles that become, by rounding up, the float8e8m0 of another rounding mode."""
    if round_mode != "up":
        bits = loops.bits(x, "uint64")
        if round_mode == "nearest":
            bits = loops.apply("add", bits, 1 << _FRACTION - 1)
        bits = loops.apply("shl", loops.apply("shr", bits, _FRACTION), _FRACTION)
        x = loops.where(loops.apply("lt", loops.apply("abs", x), math.inf), loops.bits(bits, "double"), x)
    if not saturate:
        return x
    positive = loops.apply("ge", x, 0)  # negative numbers and NaN have no code
    return loops.where(positive, _limited(x, _LEAST_POWER, _GREATEST_POWER), math.nan)
