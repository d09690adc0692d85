"""What an optional may hold: the types that grew with the operators of optionals."""

from __future__ import annotations

from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT4,
    FLOAT6,
    FLOAT8,
    FLOAT8E8M0,
    INT2,
    INT4,
    sequences,
)

_ELEMENTS_SINCE_28 = BFLOAT16 | FLOAT8 | FLOAT8E8M0 | FLOAT6 | FLOAT4 | INT4 | INT2
HELD = CLASSIC | sequences(CLASSIC)
HELD_SINCE_28 = _ELEMENTS_SINCE_28 | sequences(_ELEMENTS_SINCE_28)
