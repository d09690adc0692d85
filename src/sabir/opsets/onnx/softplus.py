"""Softplus: a smooth positive part, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

softplus = Operator("Softplus", summary="`log(1 + exp(x))`, elementwise.")

T = Constraint("T", FLOATS)

v1 = softplus.first(
    1,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape, nothing below 0.", differentiable=True)],
)
v22 = v1.widen(22, T=BFLOAT16)

v1.infer(same_as_first)


@v1.evaluate
@pointwise
def evaluate(x: Array, /) -> Array:
    """Compute only the distance from the positive part by an exponential, which cannot overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


v1.lower(kernels.elementwise("softplus"))


@v1.body
def body(b: Builder, x: Value, /) -> Value:
    small = b.Exp(b.Neg(b.Abs(x)))
    return b.Add(b.Relu(x), b.Log(Numbers.like(b, x).op("Add", small, 1.0)))


@v1.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Mul(g.dy, g.Sigmoid(x))


@softplus.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [1, -2, 0, 8, 100, -30, np.inf, -np.inf, np.nan]
    y = [1.3132616875182228, 0.1269280110429725, 0.6931471805599453, 8.000335406372896, 100]
    y += [9.357622968839737e-14, np.inf, 0, np.nan]
    yield from over_floats(x, y, 1, 22, bfloat16=22)
