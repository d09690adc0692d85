"""Swish: each element times its logistic function."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise, sigmoid
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

swish = Operator("Swish", summary="`x * sigmoid(alpha * x)`, elementwise; with `alpha` 1 it is SiLU.")

T = Constraint("T", FLOATS, BFLOAT16)

v24 = swish.first(
    24,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=True)],
    attributes=[Attribute("alpha", "float", "The steepness of the logistic function.", default=1.0)],
)

v24.infer(same_as_first)


@v24.evaluate
@pointwise
def evaluate(x: Array, /, *, alpha: float) -> Array:
    return x * sigmoid(alpha * x)


@v24.lower
def lower(x: Expression, /, *, alpha: float) -> Expression:
    return kernels.swish(x, alpha)


@v24.body
def body(b: Builder, x: Value, /, *, alpha: float) -> Value:
    return b.Mul(x, b.Sigmoid(Numbers.like(b, x).op("Mul", x, alpha)))


@v24.gradient
def gradient(g: Gradient, x: Value, /, *, alpha: float) -> Value:
    gate = g.Sigmoid(g.Mul(x, alpha))
    return g.Mul(g.dy, g.Add(gate, g.Mul(g.Mul(g.y(), alpha), g.Sub(1, gate))))


@swish.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits; minus infinity times 0 is NaN
    x = [1, -2, 0, 8, 100, np.inf, -np.inf, np.nan]
    y = [0.7310585786300049, -0.23840584404423512, 0, 7.997317198956268, 100, np.inf, np.nan, np.nan]
    yield from over_floats(x, y, 24, bfloat16=24)
    steeper = [0.8175744761936437, -0.09485174635513356, 0, 7.999950846603182, 100, np.inf, np.nan, np.nan]
    yield from over_floats(x, steeper, 24, bfloat16=24, alpha=1.5)
