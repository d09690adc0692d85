"""Gelu: the Gaussian error linear unit, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers import gelus
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

gelu = Operator(
    "Gelu",
    domain="com.microsoft",
    summary="`0.5 * x * (1 + erf(x / sqrt(2)))`, as Gelu of the standard computes it by default.",
    body_opset=18,
)

T = Constraint("T", FLOATS, BFLOAT16)

v1 = gelu.first(
    1,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=True)],
)


v1.infer(same_as_first)


@v1.evaluate
@pointwise
def evaluate(x: Array, /) -> Array:
    return gelus.gelu(x, "none")


@v1.lower
def lower(x: Expression, /) -> Expression:
    return gelus.lowered(x, "none")


@v1.body
def body(b: Builder, x: Value, /) -> Value:
    return gelus.emitted_with_bias(b, x, None, "none")


@v1.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Mul(g.dy, gelus.slope(g, x, "none"))


@gelu.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [1, -1, 2.5, -0.125, 0, np.inf, np.nan]
    y = [0.8413447460685429, -0.15865525393145705, 2.4844758366855597, -0.056282721896235885, 0, np.inf]
    yield from over_floats(x, [*y, np.nan], 1, bfloat16=1)
