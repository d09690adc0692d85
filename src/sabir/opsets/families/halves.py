"""Halves in function bodies: computed in float32 and rounded once, as evaluation does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.elements import BFLOAT16, FLOAT, FLOAT16
from sabir.ir import TensorType

if TYPE_CHECKING:
    from sabir.ir import Builder, Value


def widened(b: Builder, x: Value) -> Value:
    """Return `x`, or its conversion to float where it is float16 or bfloat16."""
    return b.Cast(x, to=FLOAT.number) if is_half(x) else x


def rounded(b: Builder, y: Value, like: Value) -> Value:
    """Return `y` in the type of `like`, from which it was widened."""
    assert isinstance(like.type, TensorType)
    return b.Cast(y, to=like.type.element.number) if is_half(like) else y


def is_half(x: Value) -> bool:
    """Whether a value is known to be float16 or bfloat16."""
    return isinstance(x.type, TensorType) and x.type.element in {FLOAT16, BFLOAT16}
