"""ArgMin: the index of the least element along an axis."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.opsets.families.reduction import extremes
from sabir.schema import Example, Operator

arg_min = Operator("ArgMin", summary="The index of the least element along `axis`; NaN counts as the least.")

extremes.declare(arg_min, "least", np.argmin, "argmin")


@arg_min.examples
def examples() -> Iterator[Example]:
    yield from extremes.examples_of(min, 1, 11, 12, 13, last_since=12)
    yield Example(13, np.array([2**64 - 1, 2**64 - 2], np.uint64), expect=[[1]])
    special = np.array([[np.inf, np.inf], [1, np.nan], [np.nan, -np.inf]], ml_dtypes.bfloat16)
    yield Example(13, special, axis=1, keepdims=0, expect=[[0, 1, 0]])
    yield Example(13, special, axis=1, keepdims=0, select_last_index=1, expect=[[1, 1, 0]])
