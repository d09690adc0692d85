"""BitShift: bits moved to the left or right, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.loops import Expression
from sabir.opsets.families.equivalents import bit_graphs
from sabir.opsets.families.numbers import binary, broadcasting
from sabir.opsets.typing import Array
from sabir.schema import INTEGERS, UNSIGNED, Attribute, Constraint, Example, Operator, one_of

bit_shift = Operator(
    "BitShift", summary="`X << Y` or `X >> Y`; shifts by the width or more, or below 0, leave only the sign."
)

T = Constraint("T", UNSIGNED)

v11 = bit_shift.first(
    11,
    inputs=binary.inputs(T, "What to shift.", "By how many bits.", names="XY", differentiable=False),
    outputs=binary.outputs(T, "Z", differentiable=False),
    attributes=[
        Attribute(
            "direction",
            "string",
            "LEFT: toward the higher bits; RIGHT: toward the lower.",
            required=True,
            values=one_of("LEFT", "RIGHT"),
        )
    ],
)
v28 = v11.widen(28, T=INTEGERS)


v11.infer(broadcasting.merged)


@v11.evaluate
def evaluate(x: Array, y: Array, /, *, direction: str) -> Array:
    """Unlike C, numpy returns 0 for a shift out of range, or -1 for one of a negative number to the right."""
    return np.left_shift(x, y) if direction == "LEFT" else np.right_shift(x, y)


@v11.lower
def lower(x: Expression, y: Expression, /, *, direction: str) -> Expression:
    return loops.apply("shl" if direction == "LEFT" else "shr", x, y)


v11.downgrade(bit_graphs.shifted)
v11.absent("gradient", "the results are integers")


@bit_shift.examples
def examples() -> Iterator[Example]:
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
        most, bits = np.iinfo(dtype).max, np.iinfo(dtype).bits
        x = np.array([1, 16, most, most, most], dtype)
        y = np.array([1, 3, bits - 1, bits, most], dtype)
        for opset in (11, 28):
            left = np.array([2, 128, most // 2 + 1, 0, 0], dtype)
            yield Example(opset, x, y, direction="LEFT", expect=[left])
            yield Example(opset, x, y, direction="RIGHT", expect=[[0, 2, 1, 0, 0]])
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        least, bits = np.iinfo(dtype).min, np.iinfo(dtype).bits
        x = [-5, -5, 5, -1, -1, 5, 3]
        y = np.array([1, bits, bits, -1, bits - 1, -1, bits - 1], dtype)
        yield Example(28, x, y, direction="RIGHT", expect=[[-3, -1, 0, -1, -1, 0, 0]])
        yield Example(28, x, y, direction="LEFT", expect=[np.array([-10, 0, 0, 0, least, 0, least], dtype)])
    row, column = np.array([1, 2], np.uint8), [[0], [7]]
    yield Example(11, row, column, direction="LEFT", expect=[[[1, 2], [128, 0]]])
    yield Example(11, np.zeros((0, 2), np.uint8), row, direction="LEFT", expect=[np.zeros((0, 2), np.uint8)])
