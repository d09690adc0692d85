"""ReduceMean: the mean over some axes."""

import math
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Value
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.reduction import reducing, reduction_kernels, reductions
from sabir.opsets.families.reduction.reduction_gradients import kept, share
from sabir.opsets.typing import Array, Gradient
from sabir.schema import Example, Operator

reduce_mean = Operator(
    "ReduceMean", summary="The sum over `axes`, divided by the number of elements: `sum(x) / n`."
)

v1, v18 = reducing.declare(reduce_mean, "The means; those of integers are truncated toward zero.")


def mean(x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
    count = math.prod(x.shape[axis] for axis in axes)
    wide = summed(x, axes, keepdims=keepdims, dtype=reductions.accumulator(x.dtype))
    if x.dtype.kind not in "iu":
        return (wide / count).astype(x.dtype, copy=False)
    if not count:
        return wide.astype(x.dtype)
    quotient, rest = np.divmod(wide, wide.dtype.type(count))
    return (quotient + ((rest != 0) & (wide < 0))).astype(x.dtype)


reductions.attach(v1, v18, mean)
reduction_kernels.attach(v1, v18, reduction_kernels.mean)


@v18.gradient
def gradient(g: Gradient, data: Value, axes: Value | None = None, /, *, keepdims: int) -> tuple[Value, None]:
    dy = g.Mul(g.dy, share(g, data, g.y()))
    return g.Expand(kept(g, dy, axes, keepdims), g.sizes(data)), None


@reduce_mean.examples
def examples() -> Iterator[Example]:
    yield from reducing.examples_of(
        lambda x: sum(x) / len(x) if x else math.nan, by_attribute=(1, 11, 13), by_input=(18,)
    )
    x = [[[1.0, 2, 3], [4, 5, 9]], [[-1, 0, 1], [2, 2, 2]]]
    yield Example(11, x, axes=[-1, 1], expect=[[[[4]], [[1]]]])
    yield Example(18, x, np.array([], np.int64), noop_with_empty_axes=1, expect=[x])
    for dtype in (np.float16, ml_dtypes.bfloat16):  # the sums exceed float16 and the integers of bfloat16
        yield Example(13, np.full(400, 200, dtype), expect=[[200]])
    yield Example(13, np.array([[1, -4], [-3, 3]], np.int32), axes=[1], keepdims=0, expect=[[-1, 0]])
    yield Example(1, np.array([2**31 - 1, 2**31 - 3], np.int32), expect=[[2**31 - 2]])
    yield Example(18, np.array([2**63, 2], np.uint64), expect=[[2**62 + 1]])
