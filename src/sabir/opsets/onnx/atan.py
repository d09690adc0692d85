"""Atan: the arc tangent, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

atan = Operator("Atan", summary="The angle, in radians, whose tangent is each element.")

T = Constraint("T", FLOATS)

v7 = atan.first(
    7,
    inputs=[Input("input", T, "Tangents, in a tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape; angles from -pi/2 to pi/2.", differentiable=True)],
)
v22 = v7.widen(22, T=BFLOAT16)

v7.infer(same_as_first)
v7.evaluate(through_float32(np.arctan))
v7.lower(kernels.elementwise("atan"))
v7.absent("downgrade", "no older operator computes arc tangents")


@v7.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Div(g.dy, g.Add(g.Mul(x, x), 1))


@atan.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [0.5, -1, 8, 0, np.inf, -np.inf, np.nan]
    y = [0.4636476090008061, -0.7853981633974483, 1.446441332248135, 0, 1.5707963267948966]
    y += [-1.5707963267948966, np.nan]
    yield from over_floats(x, y, 7, 22, bfloat16=22)
