"""ReduceSum: the sum over some axes."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Value, add
from sabir.opsets.families.reduction import reducing, reduction_kernels, reductions
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, Example, Operator

reduce_sum = Operator("ReduceSum", summary="The sum over `axes`; no elements have the sum 0.")

v1, v11 = reducing.declare_first(reduce_sum, "The sums; integers wrap.")
v13 = reducing.axes_as_input(v11, 13, T=BFLOAT16)

reductions.attach(v1, v13, reductions.total, add)
reduction_kernels.attach(v1, v13, reduction_kernels.fold("sum"))


@v13.gradient
def gradient(g: Gradient, data: Value, axes: Value | None = None, /, *, keepdims: int) -> tuple[Value, None]:
    kept = g.dy if keepdims or axes is None else g.Unsqueeze(g.dy, axes)
    return g.Expand(kept, g.sizes(data)), None


@reduce_sum.examples
def examples() -> Iterator[Example]:
    yield from reducing.examples_of(sum, by_attribute=(1, 11), by_input=(13,))
    yield Example(13, np.array([2**31 - 1, 1], np.int32), keepdims=0, expect=[-(2**31)])
    yield Example(13, np.array([2**64 - 1, 3], np.uint64), expect=[[2]])
    special = np.array([[1, np.inf], [np.nan, 1], [np.inf, -np.inf]])
    yield Example(13, special, [1], keepdims=0, expect=[[np.inf, np.nan, np.nan]])
    yield Example(13, np.zeros((0, 3), np.int64), expect=[np.zeros((1, 1), np.int64)])
    for dtype in (np.float16, ml_dtypes.bfloat16):  # an accumulator of this type would stop at 2048 or 256
        yield Example(13, np.ones(3000, dtype), expect=[[3000]])
