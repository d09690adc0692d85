"""Acosh: the inverse hyperbolic cosine, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

acosh = Operator(
    "Acosh", summary="The nonnegative number whose hyperbolic cosine is each element; NaN below 1."
)

T = Constraint("T", FLOATS)

v9 = acosh.first(
    9,
    inputs=[Input("input", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape, nothing below 0.", differentiable=True)],
)
v22 = v9.widen(22, T=BFLOAT16)

v9.infer(same_as_first)
v9.evaluate(through_float32(np.arccosh))
v9.lower(kernels.elementwise("acosh"))
v9.absent("downgrade", "logarithms of older operators lose the digits of results near 0")


@v9.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Div(g.dy, g.Sqrt(g.Mul(g.Sub(x, 1), g.Add(x, 1))))


@acosh.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [1.5, 1, 10, np.inf, 0.5, np.nan]
    y = [0.9624236501192069, 0, 2.993222846126381, np.inf, np.nan, np.nan]
    yield from over_floats(x, y, 9, 22, bfloat16=22)
