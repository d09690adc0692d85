"""Numbers beside tensors in graphs that rooms build: constants of a tensor's own type, at any opset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import TensorType
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Builder, Value

_NUMPY_BROADCAST = 7  # from this opset on operators broadcast numpy's way; before, an attribute asks for it
_CLIP_BY_INPUT = 11  # from this opset on Clip takes its limits as inputs


def element_of(x: Value) -> ElementType:
    """Return the element type of a tensor; raises Unconvertible where it is unknown."""
    if not isinstance(x.type, TensorType) or not x.type.element.number:
        raise Unconvertible("the element type is unknown, and constants must be of it")
    return x.type.element


def constant(b: Builder, x: Value, number: float) -> Value:
    """Return a scalar of the element type of `x`."""
    return b.initializer("constant", np.array(number, element_of(x).dtype))


def with_number(b: Builder, op: str, x: Value, number: float) -> Value:
    """Return a binary operator of a tensor and a number, which comes second."""
    mode = {} if b.opset >= _NUMPY_BROADCAST else {"broadcast": 1}
    return b.op(op, x, constant(b, x, number), **mode)


def clipped(b: Builder, x: Value, low: float, high: float) -> Value:
    """Return `x` kept within two numbers."""
    if b.opset < _CLIP_BY_INPUT:
        return b.Clip(x, min=low, max=high)
    return b.Clip(x, constant(b, x, low), constant(b, x, high))


def exponential_unit(b: Builder, x: Value, alpha: float) -> Value:
    """Return x from 0 on, and `alpha * (exp(x) - 1)` below, of operators that every opset has."""
    below = b.Exp(b.Neg(b.Relu(b.Neg(x))))
    return b.Add(b.Relu(x), with_number(b, "Mul", with_number(b, "Sub", below, 1.0), alpha))
