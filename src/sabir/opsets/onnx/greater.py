"""Greater: comparison of two tensors, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import binary, broadcasting, comparison
from sabir.schema import BFLOAT16, BOOL, FLOATS, NUMBERS, Constraint, Example, Operator

greater = Operator("Greater", summary="Whether `A > B`, elementwise; false for NaN.")

T = Constraint("T", FLOATS)
T1 = Constraint("T1", BOOL)

v1 = greater.first(
    1,
    inputs=binary.inputs(T, differentiable=False),
    outputs=binary.outputs(T1, differentiable=False),
    attributes=binary.one_way(),
)
v7 = v1.evolve(7, "Broadcasts both inputs, as numpy does.", drop=["axis", "broadcast"])
v9 = v7.widen(9, T=NUMBERS)
v13 = v9.widen(13, T=BFLOAT16)

v7.infer(comparison.greater)
v7.evaluate(binary.elementwise(np.greater))
v7.lower(kernels.elementwise("gt"))
broadcasting.one_way_before(v7, element=BOOLEAN)
comparison.through_double(v9)
v1.absent("gradient", "the results are truth values")


@greater.examples
def examples() -> Iterator[Example]:
    a = np.array([[1, 2], [np.nan, np.inf]], np.float32)
    row, column = np.array([1, -np.inf], np.float32), np.array([[2], [0]], np.float32)
    yield from binary.examples_of("gt", a, row, column, one_way=(1,), both_ways=(7, 9, 13))
    for opset in (7, 9, 13):
        yield Example(opset, 1, np.zeros((2, 0), np.float16), expect=[np.zeros((2, 0), bool)])
    yield Example(9, np.array([0, 2**64 - 1], np.uint64), 2**63, expect=[[False, True]])
    yield Example(9, np.array([-128, 127], np.int8), -128, expect=[[False, True]])
    halves = np.array([1, -2], ml_dtypes.bfloat16)
    yield Example(13, halves, halves[::-1], expect=[[True, False]])
