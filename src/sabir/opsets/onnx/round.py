"""Round: rounding to the nearest integer, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.equivalents.roundings import rounded
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import known_rounding, over_floats
from sabir.opsets.families.numbers.pointwise_gradients import zero
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

rounding = Operator(
    "Round", summary="The integer nearest to each element; of two equally near ones, the even one."
)

T = Constraint("T", FLOATS)

v11 = rounding.first(
    11,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=False)],
    outputs=[Output("Y", T, "The input's shape, of integers.", differentiable=False)],
)
v22 = v11.widen(22, T=BFLOAT16)

v11.infer(known_rounding(np.rint))
v11.evaluate(through_float32(np.rint))
v11.lower(kernels.elementwise("round"))


@v11.downgrade
def from_above(b: Builder, x: Value, /) -> Value:
    return rounded(b, x)


v11.gradient(zero)


@rounding.examples
def examples() -> Iterator[Example]:
    x = [1.5, 2.5, -4.5, 0.9, 2.25, -0.5, -np.inf, np.nan]
    y = [2, 2, -4, 1, 2, -0.0, -np.inf, np.nan]
    yield from over_floats(x, y, 11, 22, bfloat16=22)
