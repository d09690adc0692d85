"""Sign: the sign of each element."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import dim_max, dim_min
from sabir.opsets.families.pointwise import known_by, over_floats
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, NUMBERS, Constraint, Example, Input, Operator, Output

sign = Operator(
    "Sign", summary="1 where an element is above 0, -1 where it is below, 0 where it is 0; NaN stays NaN."
)

T = Constraint("T", NUMBERS)

v9 = sign.first(
    9,
    inputs=[Input("input", T, "A tensor of any shape.", differentiable=False)],
    outputs=[Output("output", T, "The input's shape, of -1, 0 and 1.", differentiable=False)],
)
v13 = v9.widen(13, T=BFLOAT16)

v9.infer(known_by(lambda x: dim_max(-1, dim_min(x, 1))))


@v9.evaluate
def evaluate(x: Array, /) -> Array:
    return np.sign(x)


@sign.examples
def examples() -> Iterator[Example]:
    x, y = [1.5, -2, 0, -0.0, np.inf, -np.inf, np.nan], [1, -1, 0, 0, 1, -1, np.nan]
    yield from over_floats(x, y, 9, 13, bfloat16=13)
    for opset in (9, 13):
        yield Example(opset, np.array([-128, 127, 0], np.int8), expect=[[-1, 1, 0]])
        yield Example(opset, np.array([0, 2**64 - 1], np.uint64), expect=[[0, 1]])
