"""Not: logical negation, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import logic
from sabir.opsets.typing import Array
from sabir.schema import BOOL, Constraint, Example, Input, Operator, Output

negation = Operator("Not", summary="True where the element is false, and false where it is true.")

T = Constraint("T", BOOL)

v1 = negation.first(
    1,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=False)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=False)],
)

v1.infer(logic.known_opposite)


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    return np.logical_not(x)


v1.lower(kernels.elementwise("not"))
v1.absent("gradient", "the results are truth values")


@negation.examples
def examples() -> Iterator[Example]:
    yield Example(1, [[True], [False]], expect=[[[False], [True]]])
    yield Example(1, 0, expect=[1])
    yield Example(1, np.zeros((2, 0), bool), expect=[np.zeros((2, 0), bool)])
