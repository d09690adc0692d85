"""GlobalMaxPool: the greatest element of each channel."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.sizes import passed_over
from sabir.opsets.families.windows.pooling import declare_global
from sabir.opsets.families.windows.pooling_gradients import of_first_maximum
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Example, Operator

global_max_pool = Operator(
    "GlobalMaxPool", summary="The greatest element of each channel over all spatial axes."
)

v1 = declare_global(global_max_pool, "maximum")
v22 = v1.widen(22, T=BFLOAT16)


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    passed_over(x)
    spatial = tuple(range(2, x.ndim))
    y = np.maximum.reduce(widened(x), axis=spatial, keepdims=True, initial=-np.inf)
    return y.astype(x.dtype, copy=False)


@v1.lower
def lower(x: Expression, /) -> Expression:
    return loops.reduce("max", x, range(2, x.rank))


@v1.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    """Of the first of equal maxima, as in PyTorch."""
    return of_first_maximum(g, x)


@global_max_pool.examples
def examples() -> Iterator[Example]:
    x = [[[[1, 2], [3, 6]], [[-1, -7], [-np.inf, -2]], [[0, np.nan], [5, 1]]]]
    for opset in (1, 22):
        yield Example(opset, x, expect=[[[[[6]], [[-1]], [[np.nan]]]]])
    yield Example(1, np.array([[[-3, -4]]], np.float16), expect=[[[[-3]]]])
    brain = ml_dtypes.bfloat16
    yield Example(22, np.array([[[1, 2.5]]], brain), expect=[[[[2.5]]]])
    yield Example(1, np.arange(8, dtype=float).reshape(1, 1, 2, 2, 2), expect=[np.full((1, 1, 1, 1, 1), 7.0)])
    yield Example(1, np.zeros((2, 0, 3), np.float32), expect=[np.zeros((2, 0, 1), np.float32)])
    # the maximum of no elements
    yield Example(1, np.zeros((1, 1, 0), np.float32), expect=[np.full((1, 1, 1), -np.inf, np.float32)])
