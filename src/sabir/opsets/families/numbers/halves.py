"""Half-precision floats in function bodies: computed in float32 and rounded once, as in evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.elements import BFLOAT16, FLOAT, FLOAT16
from sabir.ir import TensorType

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Builder, Value


def widened(b: Builder, x: Value) -> Value:
    """Return `x`, or its conversion to float where it is float16 or bfloat16."""
    return x if _half_of(x) is None else b.Cast(x, to=FLOAT.number)


def rounded(b: Builder, y: Value, like: Value) -> Value:
    """Return `y` in the type of `like`, from which it was widened."""
    half = _half_of(like)
    return y if half is None else b.Cast(y, to=half.number)


def _half_of(x: Value) -> ElementType | None:
    element = x.type.element if isinstance(x.type, TensorType) else None
    return element if element in {FLOAT16, BFLOAT16} else None
