"""ReduceSumSquare: the sum of squares over some axes."""

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

reduce_sum_square = Operator("ReduceSumSquare", summary="The sum of squares over `axes`: `sum(x * x)`.")

v1, v18 = reducing.declare(reduce_sum_square, "The sums; integers wrap.")


def sum_of_squares(x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
    return reductions.total(np.square(widened(x)), axes, keepdims=keepdims).astype(x.dtype, copy=False)


reductions.attach(v1, v18, sum_of_squares)
reduction_kernels.attach(v1, v18, reduction_kernels.square_sum)


@v18.body
def body(b: Builder, data: Value, axes: Value | None = None, /, **attributes: Any) -> Value:
    wide = halves.widened(b, data)
    return halves.rounded(b, b.ReduceSum(b.Mul(wide, wide), axes, **attributes), data)


@v18.gradient
def gradient(g: Gradient, data: Value, axes: Value | None = None, /, *, keepdims: int) -> tuple[Value, None]:
    return g.Mul(g.Mul(data, 2), kept(g, g.dy, axes, keepdims)), None


@reduce_sum_square.examples
def examples() -> Iterator[Example]:
    yield from reducing.examples_of(lambda x: sum(n * n for n in x), by_attribute=(1, 11, 13), by_input=(18,))
    yield Example(18, np.array([2**16, 3], np.int32), keepdims=0, expect=[9])
    yield Example(18, np.array([[-np.inf, 1], [np.nan, 1]]), [1], keepdims=0, expect=[[np.inf, np.nan]])
    for dtype in (np.float16, ml_dtypes.bfloat16):
        yield Example(18, np.full(100, 25, dtype), expect=[[62500]])
