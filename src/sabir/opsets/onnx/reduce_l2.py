"""ReduceL2: the L2 norm over some axes."""

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

reduce_l2 = Operator("ReduceL2", summary="The root of the sum of squares over `axes`: `sqrt(sum(x * x))`.")

v1, v18 = reducing.declare(reduce_l2, "The norms; those of integers are truncated toward zero.")


def norm(x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
    return np.sqrt(reductions.total(np.square(x), axes, keepdims=keepdims))


reductions.attach(v1, v18, reductions.in_floats(norm))  # squares of integers would wrap
reduction_kernels.attach(v1, v18, reduction_kernels.in_floats(reduction_kernels.euclidean))


@v18.body
def body(b: Builder, data: Value, axes: Value | None = None, /, **attributes: Any) -> Value:
    wide = reductions.as_floats(b, data)
    return reductions.as_before(b, b.Sqrt(b.ReduceSum(b.Mul(wide, wide), axes, **attributes)), data)


@v18.gradient
def gradient(g: Gradient, data: Value, axes: Value | None = None, /, *, keepdims: int) -> tuple[Value, None]:
    """At a norm of 0 it is 0, as in PyTorch."""
    norm = g.Where(g.Equal(g.y(), 0), 1, g.y())
    return g.Mul(data, kept(g, g.Div(g.dy, norm), axes, keepdims)), None


@reduce_l2.examples
def examples() -> Iterator[Example]:
    yield from reducing.examples_of(lambda x: math.hypot(*x), by_attribute=(1, 11, 13), by_input=(18,))
    yield Example(18, np.array([60000, -80000], np.int32), keepdims=0, expect=[100000])
    yield Example(18, np.array([[3, 4], [1, 2]], np.uint64), [1], keepdims=0, expect=[[5, 2]])
    yield Example(18, np.array([[-np.inf, 1], [np.nan, 1]]), [1], keepdims=0, expect=[[np.inf, np.nan]])
    for dtype in (np.float16, ml_dtypes.bfloat16):  # the squares exceed float16
        yield Example(18, np.array([3072, -4096], dtype), expect=[[5120]])
