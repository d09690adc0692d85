"""Greater: comparison of two tensors, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.opsets.families.numbers import binary, comparison
from sabir.schema import Example, Operator

greater = Operator("Greater", summary="Whether `A > B`, elementwise; false for NaN.")

comparison.declare(greater, np.greater, "gt", comparison.greater)


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
