"""ReduceL1: the L1 norm over some axes."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.reduction import reducing, reduction_kernels, reductions
from sabir.opsets.families.reduction.reduction_gradients import kept
from sabir.opsets.typing import Array, Gradient
from sabir.schema import Example, Operator

reduce_l1 = Operator("ReduceL1", summary="The sum of absolute values over `axes`: `sum(abs(x))`.")

v1, v18 = reducing.declare(reduce_l1, "The norms; integers wrap.")


def norm(x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
    return reductions.total(np.abs(widened(x)), axes, keepdims=keepdims).astype(x.dtype, copy=False)


reductions.attach(v1, v18, norm)
reduction_kernels.attach(v1, v18, reduction_kernels.absolute_sum)


@v18.body
def body(b: Builder, data: Value, axes: Value | None = None, /, **attributes: Any) -> Value:
    sizes = b.Abs(halves.widened(b, data))
    return halves.rounded(b, b.ReduceSum(sizes, axes, **attributes), data)


@v18.gradient
def gradient(g: Gradient, data: Value, axes: Value | None = None, /, *, keepdims: int) -> tuple[Value, None]:
    """At 0 it is 0, as in PyTorch."""
    return g.Mul(kept(g, g.dy, axes, keepdims), g.Sign(data)), None


@reduce_l1.examples
def examples() -> Iterator[Example]:
    yield from reducing.examples_of(lambda x: sum(map(abs, x)), by_attribute=(1, 11, 13), by_input=(18,))
    yield Example(18, np.array([-(2**31), 1], np.int32), keepdims=0, expect=[1 - 2**31])
    yield Example(18, np.array([2**64 - 1, 3], np.uint64), keepdims=0, expect=[2])
    yield Example(18, np.array([[-np.inf, 1], [np.nan, 1]]), [1], keepdims=0, expect=[[np.inf, np.nan]])
    for dtype in (np.float16, ml_dtypes.bfloat16):
        yield Example(18, np.full(3000, -1, dtype), expect=[[3000]])
