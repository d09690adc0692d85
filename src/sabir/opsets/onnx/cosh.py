"""Cosh: the hyperbolic cosine, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.equivalents import hyperbolic
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

cosh = Operator("Cosh", summary="The hyperbolic cosine of each element: `(exp(x) + exp(-x)) / 2`.")

T = Constraint("T", FLOATS)

v9 = cosh.first(
    9,
    inputs=[Input("input", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape, nothing below 1.", differentiable=True)],
)
v22 = v9.widen(22, T=BFLOAT16)

v9.infer(same_as_first)
v9.evaluate(through_float32(np.cosh))
v9.lower(kernels.elementwise("cosh"))
v9.downgrade(hyperbolic.cosine)


@v9.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Mul(g.dy, g.Sinh(x))


@cosh.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [1, -2, 8, 0, np.inf, -np.inf, np.nan]
    y = [1.5430806348152437, 3.7621956910836314, 1490.479161252178, 1, np.inf, np.inf, np.nan]
    yield from over_floats(x, y, 9, 22, bfloat16=22)
