"""ReduceLogSum: the logarithm of the sum over some axes."""

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.reduction import reducing, reduction_kernels, reductions
from sabir.opsets.families.reduction.reduction_gradients import kept
from sabir.opsets.typing import Array, Gradient
from sabir.schema import Example, Operator

reduce_log_sum = Operator("ReduceLogSum", summary="The logarithm of the sum over `axes`: `log(sum(x))`.")

v1, v18 = reducing.declare(reduce_log_sum, "The logarithms; -infinity for no elements.")
v28 = reducing.floats_only(v18, 28)


def log_of_sum(x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
    return np.log(reductions.total(x, axes, keepdims=keepdims))


reductions.attach(v1, v18, reductions.in_floats(log_of_sum))
reduction_kernels.attach(v1, v18, reduction_kernels.in_floats(reduction_kernels.log_sum))
reductions.attach_without_integers(v28)


@v18.body
def body(b: Builder, data: Value, axes: Value | None = None, /, **attributes: Any) -> Value:
    wide = reductions.as_floats(b, data)
    return reductions.as_before(b, b.Log(b.ReduceSum(wide, axes, **attributes)), data)


@v18.gradient
def gradient(
    g: Gradient, data: Value, axes: Value | None = None, /, *, keepdims: int, noop_with_empty_axes: int
) -> tuple[Value, None]:
    total = g.ReduceSum(data, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)
    return g.Expand(kept(g, g.Div(g.dy, total), axes, keepdims), g.sizes(data)), None


@reduce_log_sum.examples
def examples() -> Iterator[Example]:
    yield from reducing.examples_of(lambda x: np.log(sum(x)), by_attribute=(1, 11, 13), by_input=(18, 28))
    yield Example(18, np.array([[20, 1], [0, 1]], np.int32), [1], keepdims=0, expect=[[3, 0]])
    yield Example(28, np.array([[np.inf, 1], [-1, 0]]), [1], keepdims=0, expect=[[np.inf, np.nan]])
    for dtype in (np.float16, ml_dtypes.bfloat16):  # the sums exceed float16
        yield Example(28, np.full(4, 2.0**15, dtype), expect=[[math.log(2**17)]], tolerance=1e-2)
