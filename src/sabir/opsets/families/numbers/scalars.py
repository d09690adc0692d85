"""Scalar constants in function bodies: of the element type of a tensor, in any opset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families.building.calls import has_attribute
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Builder, Value


def element_of(x: Value) -> ElementType:
    """Return the element type of a tensor; raises Unconvertible where it is unknown."""
    if not isinstance(x.type, TensorType) or not x.type.element.number:
        raise Unconvertible("the element type is unknown, and constants must be of it")
    return x.type.element


@dataclass(frozen=True, slots=True)
class Numbers:
    """Scalar constants of one element type in the graph of a builder."""

    b: Builder
    element: ElementType

    @classmethod
    def like(cls, b: Builder, x: Value) -> Numbers:
        """Return numbers of the element type of `x`; raises Unconvertible where it is unknown."""
        return cls(b, element_of(x))

    def __call__(self, number: float) -> Value:
        """Add a scalar constant."""
        with np.errstate(over="ignore"):  # a number that the type does not have is infinite
            return self.b.initializer("constant", np.array(number, self.element.dtype))

    def op(self, name: str, x: Value, number: float) -> Value:
        """Emit a binary operator whose second operand is a number."""
        if has_attribute(self.b, name, "broadcast"):
            return self.b.op(name, x, self(number), broadcast=1)
        return self.b.op(name, x, self(number))

    def clipped(self, x: Value, low: float, high: float) -> Value:
        """Emit Clip between two numbers."""
        if has_attribute(self.b, "Clip", "min"):
            return self.b.Clip(x, min=low, max=high)
        return self.b.Clip(x, self(low), self(high))

    def exponential_unit(self, x: Value, alpha: float) -> Value:
        """Emit x where it is 0 or above, `alpha * (exp(x) - 1)` below, in operators that every opset has."""
        below = self.b.Exp(self.b.Neg(self.b.Relu(self.b.Neg(x))))
        return self.b.Add(self.b.Relu(x), self.op("Mul", self.op("Sub", below, 1.0), alpha))
