"""The activation functions of recurrent layers and their derivatives, in the graph of a gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sabir.opsets.families.numbers.scalars import Numbers

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from sabir.elements import ElementType
    from sabir.ir import Builder, Value
    from sabir.opsets.families.recurrence.recurrences import Named

    Slope: TypeAlias = Callable[["Slopes", Value], Value]


@dataclass(frozen=True, slots=True)
class Slopes:
    """An activation function of inputs limited to [-bound, bound], in the graph of a builder."""

    b: Builder
    element: ElementType
    function: Named
    bound: float | None

    def inside(self, b: Builder) -> Slopes:
        """Return the same function in the graph of another builder."""
        return replace(self, b=b)

    @property
    def alpha(self) -> float:
        """The first parameter."""
        return self.function.alpha or 0.0

    @property
    def beta(self) -> float:
        """The second parameter."""
        return self.function.beta or 0.0

    def number(self, value: float) -> Value:
        """Return a constant."""
        return Numbers(self.b, self.element)(value)

    def where(self, mask: Value) -> Value:
        """Return 1 where a mask is true, and 0 elsewhere."""
        return self.b.Cast(mask, to=self.element.number)

    def value(self, x: Value) -> Value:
        """Return the function of `x`."""
        return _VALUES[self.function.name](self, self._limited(x))

    def slope(self, x: Value) -> Value:
        """Return the derivative at `x`, zero beyond the limits; at a kink that of the side of PyTorch."""
        slope = _SLOPES[self.function.name](self, self._limited(x))
        if self.bound is None:
            return slope
        low, high = (self.number(bound) for bound in (-self.bound, self.bound))
        inside = self.b.And(self.b.GreaterOrEqual(x, low), self.b.LessOrEqual(x, high))
        return self.b.Mul(slope, self.where(inside))

    def _limited(self, x: Value) -> Value:
        if self.bound is None:
            return x
        return self.b.Clip(x, self.number(-self.bound), self.number(self.bound))


def _scaled_tanh(s: Slopes, x: Value) -> Value:
    return s.b.Tanh(s.b.Mul(x, s.number(s.beta)))


def _of_tanh(s: Slopes, y: Value, factor: float = 1.0) -> Value:
    """Return the derivative of `factor * tanh` where tanh is `y`."""
    slope = s.b.Sub(s.number(1), s.b.Mul(y, y))
    return slope if factor == 1 else s.b.Mul(slope, s.number(factor))


def _of_sigmoid(s: Slopes, x: Value) -> Value:
    y = s.b.Sigmoid(x)
    return s.b.Sub(y, s.b.Mul(y, y))


def _line(s: Slopes, x: Value) -> Value:
    return s.b.Add(s.b.Mul(x, s.number(s.alpha)), s.number(s.beta))


def _above(s: Slopes, x: Value, bound: float = 0.0) -> Value:
    return s.where(s.b.Greater(x, s.number(bound)))


def _of_leaky(s: Slopes, x: Value) -> Value:
    return s.b.Add(s.b.Mul(_above(s, x), s.number(1 - s.alpha)), s.number(s.alpha))


def _of_hard_sigmoid(s: Slopes, x: Value) -> Value:
    y, b = _line(s, x), s.b
    inside = b.And(b.Greater(y, s.number(0)), b.Less(y, s.number(1)))
    return b.Mul(s.where(inside), s.number(s.alpha))


def _of_elu(s: Slopes, x: Value) -> Value:
    b = s.b
    below = b.Mul(b.Exp(b.Min(x, s.number(0))), s.number(s.alpha))
    return b.Where(b.Greater(x, s.number(0)), s.number(1), below)


def _of_softsign(s: Slopes, x: Value) -> Value:
    share = s.b.Div(s.number(1), s.b.Add(s.b.Abs(x), s.number(1)))
    return s.b.Mul(share, share)


_VALUES: dict[str, Slope] = {
    "Relu": lambda s, x: s.b.Relu(x),
    "Tanh": lambda s, x: s.b.Tanh(x),
    "Sigmoid": lambda s, x: s.b.Sigmoid(x),
    "Affine": _line,
    "LeakyRelu": lambda s, x: s.b.LeakyRelu(x, alpha=s.alpha),
    "ThresholdedRelu": lambda s, x: s.b.Mul(x, _above(s, x, s.alpha)),
    "ScaledTanh": lambda s, x: s.b.Mul(_scaled_tanh(s, x), s.number(s.alpha)),
    "HardSigmoid": lambda s, x: s.b.HardSigmoid(x, alpha=s.alpha, beta=s.beta),
    "Elu": lambda s, x: s.b.Elu(x, alpha=s.alpha),
    "Softsign": lambda s, x: s.b.Softsign(x),
    "Softplus": lambda s, x: s.b.Softplus(x),
}
_SLOPES: dict[str, Slope] = {
    "Relu": _above,
    "Tanh": lambda s, x: _of_tanh(s, s.b.Tanh(x)),
    "Sigmoid": _of_sigmoid,
    "Affine": lambda s, x: s.b.Expand(s.number(s.alpha), s.b.Shape(x)),
    "LeakyRelu": _of_leaky,
    "ThresholdedRelu": lambda s, x: _above(s, x, s.alpha),
    "ScaledTanh": lambda s, x: _of_tanh(s, _scaled_tanh(s, x), s.alpha * s.beta),
    "HardSigmoid": _of_hard_sigmoid,
    "Elu": _of_elu,
    "Softsign": _of_softsign,
    "Softplus": lambda s, x: s.b.Sigmoid(x),
}
