"""Tan: the tangent, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

tan = Operator("Tan", summary="The tangent of each element, an angle in radians.")

T = Constraint("T", FLOATS)

v7 = tan.first(
    7,
    inputs=[Input("input", T, "Angles, in a tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape.", differentiable=True)],
)
v22 = v7.widen(22, T=BFLOAT16)

v7.infer(same_as_first)
v7.evaluate(through_float32(np.tan))
v7.lower(kernels.elementwise("tan"))
v7.absent("downgrade", "no older operator computes tangents")


@v7.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Mul(g.dy, g.Add(g.Mul(g.y(), g.y()), 1))


@tan.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [0.5, -1, 2, 10, 0, np.inf, np.nan]
    y = [0.5463024898437905, -1.5574077246549023, -2.185039863261519, 0.6483608274590866, 0, np.nan, np.nan]
    yield from over_floats(x, y, 7, 22, bfloat16=22)
