"""LessOrEqual: comparison of two tensors, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families import comparison
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, BOOL, NUMBERS, Constraint, Example, Input, Operator, Output

less_or_equal = Operator("LessOrEqual", summary="Whether `A <= B`, elementwise; false beside NaN.")

T = Constraint("T", NUMBERS)
T1 = Constraint("T1", BOOL)

v12 = less_or_equal.first(
    12,
    inputs=[
        Input("A", T, "The operand that may be less.", differentiable=False),
        Input("B", T, "The operand that may be greater.", differentiable=False),
    ],
    outputs=[Output("C", T1, "The shape that both inputs broadcast to.", differentiable=False)],
)
v16 = v12.widen(16, T=BFLOAT16)


@v12.infer
def infer(a: TensorType, b: TensorType, /) -> TensorType:
    return comparison.not_less(b, a)


@v12.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return np.less_equal(a, b)


@v12.body
def body(b: Builder, left: Value, right: Value, /) -> Value:
    return b.Or(b.Less(left, right), b.Equal(left, right))


@less_or_equal.examples
def examples() -> Iterator[Example]:
    for opset in (12, 16):
        a = [[1.0], [np.nan], [-np.inf]]
        table = [[True, False], [False, False], [True, True]]
        yield Example(opset, a, [1.0, -np.inf], expect=[table])
        yield Example(opset, np.array([0, 2**64 - 1], np.uint64), 2**63, expect=[[True, False]])
        yield Example(opset, np.zeros((2, 0), np.int8), 1, expect=[np.zeros((2, 0), bool)])
    halves = np.array([1, -2], ml_dtypes.bfloat16)
    yield Example(16, halves, halves[::-1], expect=[[False, True]])
