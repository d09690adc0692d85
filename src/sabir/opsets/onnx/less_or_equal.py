"""LessOrEqual: comparison of two tensors, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.opsets.families.numbers import comparison
from sabir.schema import Example, Operator

less_or_equal = Operator("LessOrEqual", summary="Whether `A <= B`, elementwise; false for NaN.")

comparison.declare_or_equal(less_or_equal, np.less_equal, "le", comparison.not_greater, strict="Less")


@less_or_equal.examples
def examples() -> Iterator[Example]:
    for opset in (12, 16):
        table = [[True, False], [False, False], [True, True]]
        yield Example(opset, [[1.0], [np.nan], [-np.inf]], [1.0, -np.inf], expect=[table])
        yield Example(opset, np.array([0, 2**64 - 1], np.uint64), 2**63, expect=[[True, False]])
        yield Example(opset, np.zeros((2, 0), np.int8), 1, expect=[np.zeros((2, 0), bool)])
    halves = np.array([1, -2], ml_dtypes.bfloat16)
    yield Example(16, halves, halves[::-1], expect=[[False, True]])
