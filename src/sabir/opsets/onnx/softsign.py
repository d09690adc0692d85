"""Softsign: a smooth sign, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

softsign = Operator("Softsign", summary="`x / (1 + |x|)`, elementwise.")

T = Constraint("T", FLOATS)

v1 = softsign.first(
    1,
    inputs=[Input("input", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape; every value between -1 and 1.", differentiable=True)],
)
v22 = v1.widen(22, T=BFLOAT16)

v1.infer(same_as_first)


@v1.evaluate
@pointwise
def evaluate(x: Array, /) -> Array:
    return x / (1 + np.abs(x))


@v1.lower
def lower(x: Expression, /) -> Expression:
    return loops.apply("div", x, loops.apply("add", loops.apply("abs", x), 1))


@v1.body
def body(b: Builder, x: Value, /) -> Value:
    return b.Div(x, Numbers.like(b, x).op("Add", b.Abs(x), 1.0))


@v1.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    size = g.Add(g.Abs(x), 1)
    return g.Div(g.dy, g.Mul(size, size))


@softsign.examples
def examples() -> Iterator[Example]:
    # by hand; infinity over infinity is NaN
    x = [1, -3, 0, -0.0, 7, -0.25, np.inf, np.nan]
    y = [0.5, -0.75, 0, -0.0, 0.875, -0.2, np.nan, np.nan]
    yield from over_floats(x, y, 1, 22, bfloat16=22)
