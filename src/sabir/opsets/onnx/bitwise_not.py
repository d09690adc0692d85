"""BitwiseNot: every bit inverted, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array
from sabir.schema import INTEGERS, Constraint, Example, Input, Operator, Output

bitwise_not = Operator("BitwiseNot", summary="Each element with every bit inverted.")

T = Constraint("T", INTEGERS)

v18 = bitwise_not.first(
    18,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=False)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=False)],
)

v18.infer(same_as_first)


@v18.evaluate
def evaluate(x: Array, /) -> Array:
    return np.bitwise_not(x)


v18.lower(kernels.elementwise("bitwise_not"))


@v18.downgrade
def subtract(b: Builder, x: Value, /) -> Value:
    """Subtract from the number of which every bit is set."""
    numbers = Numbers.like(b, x)
    limits = np.iinfo(numbers.element.dtype)
    return b.Sub(numbers(-1 if limits.min else limits.max), x)


v18.absent("gradient", "the results are integers")


@bitwise_not.examples
def examples() -> Iterator[Example]:
    for kind in (np.int8, np.int16, np.int32, np.int64):
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        yield Example(18, np.array([[0, 5, least]], kind), expect=[np.array([[-1, -6, most]], kind)])
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64):
        most = np.iinfo(kind).max
        yield Example(18, np.array([0, 5, most], kind), expect=[np.array([most, most - 5, 0], kind)])
    yield Example(18, -1, expect=[0])
    yield Example(18, np.zeros((0, 2), np.int8), expect=[np.zeros((0, 2), np.int8)])
