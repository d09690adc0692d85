"""GlobalAveragePool: the mean of each channel."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.shapes.sizes import passed_over
from sabir.opsets.families.windows.pooling import declare_global
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Example, Operator

global_average_pool = Operator("GlobalAveragePool", summary="The mean of each channel over all spatial axes.")

v1 = declare_global(global_average_pool, "mean")
v22 = v1.widen(22, T=BFLOAT16)


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    passed_over(x)
    spatial = tuple(range(2, x.ndim))
    total = summed(widened(x), spatial, keepdims=True)
    count = np.prod(x.shape[2:], dtype=total.dtype)
    return (total / count).astype(x.dtype, copy=False)


@v1.lower
def lower(x: Expression, /) -> Expression:
    return loops.mean(x, range(2, x.rank))


@v1.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    count = g.Cast(g.ReduceProd(g.Shape(x, start=2), keepdims=0), to=element_of(x).number)
    return g.Expand(g.Div(g.dy, count), g.sizes(x))


@global_average_pool.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[[1, 2], [3, 6]], [[-1, 0], [np.inf, 2]]]], f)
    for opset in (1, 22):
        yield Example(opset, x, expect=[[[[[3]], [[np.inf]]]]])
    yield Example(1, np.full((1, 1, 9), 60000, np.float16), expect=[[[[60000]]]])
    yield Example(22, np.array([[[1, 2]]], ml_dtypes.bfloat16), expect=[[[[1.5]]]])
    yield Example(1, np.arange(8, dtype=float).reshape(1, 1, 2, 2, 2), expect=[[[[[[3.5]]]]]])
    yield Example(1, np.zeros((2, 0, 3), f), expect=[np.zeros((2, 0, 1), f)])
    yield Example(1, np.zeros((1, 1, 0), f), expect=[[[[np.nan]]]])
