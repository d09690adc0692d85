"""Acos: the arc cosine, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

acos = Operator("Acos", summary="The angle, in radians, whose cosine is each element; NaN outside [-1, 1].")

T = Constraint("T", FLOATS)

v7 = acos.first(
    7,
    inputs=[Input("input", T, "Cosines, in a tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape; angles from 0 to pi.", differentiable=True)],
)
v22 = v7.widen(22, T=BFLOAT16)

v7.infer(same_as_first)
v7.evaluate(through_float32(np.arccos))
v7.lower(kernels.elementwise("acos"))
v7.absent("downgrade", "no older operator computes arc cosines")


@v7.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Neg(g.Div(g.dy, g.Sqrt(g.Mul(g.Sub(1, x), g.Add(1, x)))))


@acos.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [0.5, -0.75, 0, 1, -1, 2, np.nan]
    y = [1.0471975511965979, 2.4188584057763776, 1.5707963267948966, 0, np.pi, np.nan, np.nan]
    yield from over_floats(x, y, 7, 22, bfloat16=22)
