"""Cos: the cosine, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

cos = Operator("Cos", summary="The cosine of each element, an angle in radians.")

T = Constraint("T", FLOATS)

v7 = cos.first(
    7,
    inputs=[Input("input", T, "Angles, in a tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape; every value between -1 and 1.", differentiable=True)],
)
v22 = v7.widen(22, T=BFLOAT16)

v7.infer(same_as_first)
v7.evaluate(through_float32(np.cos, slow=2))
v7.lower(kernels.elementwise("cos"))
v7.absent("downgrade", "no older operator computes cosines")


@v7.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Neg(g.Mul(g.dy, g.Sin(x)))


@cos.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [0.5, -1, 2, 10, 0, np.inf, np.nan]
    y = [0.8775825618903728, 0.5403023058681398, -0.4161468365471424, -0.8390715290764524, 1, np.nan, np.nan]
    yield from over_floats(x, y, 7, 22, bfloat16=22)
