"""Greater: comparison of two tensors, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.ir import TensorType
from sabir.opsets.families import broadcasting, comparison
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    BOOL,
    FLOATS,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
)

greater = Operator("Greater", summary="Whether `A > B`, elementwise; false beside NaN.")

T = Constraint("T", FLOATS)
T1 = Constraint("T1", BOOL)

v1 = greater.first(
    1,
    inputs=[
        Input("A", T, "The operand that may be greater.", differentiable=False),
        Input("B", T, "The operand that may be less.", differentiable=False),
    ],
    outputs=[Output("C", T1, "The shape that both inputs broadcast to.", differentiable=False)],
    attributes=[
        Attribute(
            "axis", "int", "Where the dimensions of `B` begin among those of `A`; at the end by default."
        ),
        Attribute("broadcast", "int", "1: `B` is repeated to the shape of `A`.", default=0),
    ],
)
v7 = v1.evolve(
    7,
    "Either input is broadcast, as numpy does it; the attributes that steered it are gone.",
    drop=["axis", "broadcast"],
)
v9 = v7.widen(9, T=NUMBERS)
v13 = v9.widen(13, T=BFLOAT16)

v1.infer(broadcasting.one_way(BOOLEAN))
v7.upgrade(broadcasting.upgraded("Greater"))
v7.downgrade(broadcasting.downgraded("Greater"))


@v7.infer
def infer(a: TensorType, b: TensorType, /) -> TensorType:
    return comparison.less(b, a)


@v7.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return np.greater(a, b)


v1.evaluate(broadcasting.evaluated_one_way(evaluate))


@greater.examples
def examples() -> Iterator[Example]:
    a = [[1.0, 2.0], [np.nan, np.inf]]
    row, column = [1.0, -np.inf], np.array([2.0, 0.0], np.float32)
    by_row, by_column = [[False, True], [False, True]], [[False, False], [False, True]]
    yield Example(1, a, a, expect=[np.zeros((2, 2), bool)])
    yield Example(1, a, row, broadcast=1, expect=[by_row])
    yield Example(1, a, column, broadcast=1, axis=0, expect=[by_column])
    for opset in (7, 9, 13):
        yield Example(opset, a, row, expect=[by_row])
        yield Example(opset, a, column[:, None], expect=[by_column])
        yield Example(opset, 1, np.zeros((2, 0), np.float16), expect=[np.zeros((2, 0), bool)])
    large = np.array([0, 2**64 - 1], np.uint64)
    yield Example(9, large, 2**63, expect=[[False, True]])
    yield Example(9, np.array([-128, 127], np.int8), -128, expect=[[False, True]])
    halves = np.array([1, -2], ml_dtypes.bfloat16)
    yield Example(13, halves, halves[::-1], expect=[[True, False]])
