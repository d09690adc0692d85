"""BitwiseOr: bits set in one of both, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.opsets.families import broadcasting
from sabir.opsets.typing import Array
from sabir.schema import INTEGERS, Constraint, Example, Input, Operator, Output

bitwise_or = Operator("BitwiseOr", summary="The bits that are set in at least one of both elements.")

T = Constraint("T", INTEGERS)

v18 = bitwise_or.first(
    18,
    inputs=[
        Input("A", T, "One operand.", differentiable=False),
        Input("B", T, "The other operand.", differentiable=False),
    ],
    outputs=[Output("C", T, "The shape that both inputs broadcast to.", differentiable=False)],
)

v18.infer(broadcasting.merged)


@v18.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return np.bitwise_or(a, b)


@bitwise_or.examples
def examples() -> Iterator[Example]:
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64):
        a, b = np.array([0b1100, 0b0111], kind), [[0b1010], [0]]
        yield Example(18, a, b, expect=[[[0b1110, 0b1111], [0b1100, 0b0111]]])
    yield Example(18, np.array([-1, -128, 6], np.int8), -2, expect=[[-1, -2, -2]])
    yield Example(18, np.uint64(2**64 - 1), 2**63, expect=[2**64 - 1])
    yield Example(18, np.zeros((0, 2), np.int8), 1, expect=[np.zeros((0, 2), np.int8)])
