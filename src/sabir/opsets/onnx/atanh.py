"""Atanh: the inverse hyperbolic tangent, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

atanh = Operator("Atanh", summary="The number whose hyperbolic tangent is each element; NaN outside [-1, 1].")

T = Constraint("T", FLOATS)

v9 = atanh.first(
    9,
    inputs=[Input("input", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape; infinite at -1 and 1.", differentiable=True)],
)
v22 = v9.widen(22, T=BFLOAT16)

v9.infer(same_as_first)
v9.evaluate(through_float32(np.arctanh))
v9.lower(kernels.elementwise("atanh"))
v9.absent("downgrade", "logarithms of older operators lose the digits of results near 0")


@v9.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Div(g.dy, g.Mul(g.Sub(1, x), g.Add(1, x)))


@atanh.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [0.5, -0.75, 0, 1, -1, 2, np.nan]
    y = [0.5493061443340549, -0.9729550745276566, 0, np.inf, -np.inf, np.nan, np.nan]
    yield from over_floats(x, y, 9, 22, bfloat16=22)
