"""Asinh: the inverse hyperbolic sine, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

asinh = Operator("Asinh", summary="The number whose hyperbolic sine is each element.")

T = Constraint("T", FLOATS)

v9 = asinh.first(
    9,
    inputs=[Input("input", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape.", differentiable=True)],
)
v22 = v9.widen(22, T=BFLOAT16)

v9.infer(same_as_first)
v9.evaluate(through_float32(np.arcsinh))
v9.lower(kernels.elementwise("asinh"))
v9.absent("downgrade", "logarithms of older operators lose the digits of results near 0")


@v9.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Div(g.dy, g.Sqrt(g.Add(g.Mul(x, x), 1)))


@asinh.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [0.5, -2, 100, 0, np.inf, -np.inf, np.nan]
    y = [0.48121182505960347, -1.4436354751788103, 5.298342365610589, 0, np.inf, -np.inf, np.nan]
    yield from over_floats(x, y, 9, 22, bfloat16=22)
