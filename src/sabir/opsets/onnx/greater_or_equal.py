"""GreaterOrEqual: comparison of two tensors, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import binary, comparison
from sabir.schema import BFLOAT16, BOOL, NUMBERS, Constraint, Example, Operator

greater_or_equal = Operator("GreaterOrEqual", summary="Whether `A >= B`, elementwise; false for NaN.")

T = Constraint("T", NUMBERS)
T1 = Constraint("T1", BOOL)

v12 = greater_or_equal.first(
    12, inputs=binary.inputs(T, differentiable=False), outputs=binary.outputs(T1, differentiable=False)
)
v16 = v12.widen(16, T=BFLOAT16)

v12.infer(comparison.not_less)
v12.evaluate(binary.elementwise(np.greater_equal))
v12.lower(kernels.elementwise("ge"))


@v12.body
def body(b: Builder, left: Value, right: Value, /) -> Value:
    return b.Or(b.Greater(left, right), b.Equal(left, right))


v12.absent("gradient", "the results are truth values")


@greater_or_equal.examples
def examples() -> Iterator[Example]:
    for opset in (12, 16):
        table = [[True, False], [False, False], [True, True]]
        yield Example(opset, [[1.0], [np.nan], [np.inf]], [1.0, np.inf], expect=[table])
        yield Example(opset, np.array([0, 2**64 - 1], np.uint64), 2**63, expect=[[False, True]])
        yield Example(opset, np.zeros((2, 0), np.int8), 1, expect=[np.zeros((2, 0), bool)])
    halves = np.array([1, -2], ml_dtypes.bfloat16)
    yield Example(16, halves, halves[::-1], expect=[[True, False]])
