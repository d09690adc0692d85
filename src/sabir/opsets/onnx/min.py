"""Min: the least of several tensors, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.opsets.families.numbers import arithmetic, variadic
from sabir.schema import Example, Operator

minimum = Operator("Min", summary="The least of all inputs, elementwise; NaN where one of them is NaN.")

variadic.declare_extreme(minimum, np.minimum, "min", arithmetic.known_minimum, compare="Less")


@minimum.examples
def examples() -> Iterator[Example]:
    a, b = [[1.0, np.nan, np.inf]], np.array([[2.0, 0.0, -3.0]], np.float32)
    both = [[1.0, np.nan, -3.0]]
    for opset in (1, 6, 8, 12, 13):
        yield Example(opset, a, b, expect=[both])
        yield Example(opset, b, expect=[b])
        yield Example(opset, b, b + 1, b - 1, expect=[b - 1])
    column = [[0.0], [5.0]]
    yield Example(8, b, column, expect=[[[0, 0, -3], [2, 0, -3]]])
    yield Example(8, 1, np.zeros((0, 2)), expect=[np.zeros((0, 2))])
    yield Example(12, np.array([2**63, 1], np.uint64), 7, expect=[[7, 1]])
    yield Example(12, np.array([3, -4], np.int8), -3, expect=[[-3, -4]])
    halves, others = np.array([[1, -2, np.nan], [-1, 2, 0]], ml_dtypes.bfloat16)
    yield Example(13, halves, others, expect=[[-1, -2, np.nan]])
