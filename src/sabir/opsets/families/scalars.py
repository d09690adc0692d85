"""Numbers beside tensors in graphs that rooms build: constants of the right type, at any opset."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of one element type, for the graph that a builder grows."""

    b: Builder
    element: ElementType

    @classmethod
    def like(cls, b: Builder, x: Value) -> Numbers:
        """Return numbers of the element type of `x`; raises Unconvertible where it is unknown."""
        return cls(b, element_of(x))

    def __call__(self, number: float) -> Value:
        """Return a scalar."""
        return self.b.initializer("constant", np.array(number, self.element.dtype))

    def op(self, name: str, x: Value, number: float) -> Value:
        """Return a binary operator of a tensor and a number, which comes second."""
        if self.b.opset < _NUMPY_BROADCAST:
            return self.b.op(name, x, self(number), broadcast=1)
        return self.b.op(name, x, self(number))

    def clipped(self, x: Value, low: float, high: float) -> Value:
        """Return a tensor kept within two numbers."""
        if self.b.opset < _CLIP_BY_INPUT:
            return self.b.Clip(x, min=low, max=high)
        return self.b.Clip(x, self(low), self(high))

    def exponential_unit(self, x: Value, alpha: float) -> Value:
        """Return x from 0 on, and `alpha * (exp(x) - 1)` below, of operators that every opset has."""
        below = self.b.Exp(self.b.Neg(self.b.Relu(self.b.Neg(x))))
        return self.b.Add(self.b.Relu(x), self.op("Mul", self.op("Sub", below, 1.0), alpha))
