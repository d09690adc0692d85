"""AveragePool: the mean of each window."""

import functools
import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.ir import TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.windows.pooling import pooled_type, reduce_windows
from sabir.opsets.families.windows.pooling_gradients import of_means
from sabir.opsets.families.windows.window_kernels import averaged
from sabir.opsets.families.windows.windows import (
    AUTO_PAD,
    CEIL_MODE,
    DILATIONS,
    KERNEL_SHAPE,
    PADS,
    STRIDES,
    Window,
)
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

_BLOCK = 1 << 16  # windows whose sums are divided at a time

average_pool = Operator("AveragePool", summary="The mean of each window that slides over the spatial axes.")

T = Constraint("T", FLOATS)

v1 = average_pool.first(
    1,
    inputs=[Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True)],
    outputs=[Output("Y", T, "The means, (N, C, O1, ..., On).", differentiable=True)],
    attributes=[PADS, AUTO_PAD, STRIDES, KERNEL_SHAPE],
)
v7 = v1.extend(
    7,
    "`count_include_pad` chooses whether padding counts; before, it never did.",
    attributes=[Attribute("count_include_pad", "int", "1: padding counts as zeros in the mean.", default=0)],
)
v10 = v7.extend(10, "The last window may end beyond the input (`ceil_mode`).", attributes=[CEIL_MODE])
v11 = v10.restate(11, "States that strides are 1 by default, and how `ceil_mode` affects `auto_pad`.")
v19 = v11.extend(19, "Windows may have gaps (`dilations`).", attributes=[DILATIONS])
v22 = v19.widen(22, T=BFLOAT16)


@v1.infer
def infer(x: TensorType, /, *, count_include_pad: int = 0, **window: Any) -> TensorType:
    return pooled_type(x, Window.of(**window))


@v1.evaluate
def evaluate(x: Array, /, *, count_include_pad: int = 0, **window: Any) -> Array:
    axes = Window.of(**window).axes(x.shape[2:])
    y = reduce_windows(widened(x), axes, np.add, 0)
    first, *rest = [a.covered(padding=bool(count_include_pad)) for a in axes]
    step = max(1, _BLOCK // max(1, math.prod(map(len, rest))))
    for start in range(0, len(first), step):
        part = slice(start, start + step)
        y[:, :, part] /= functools.reduce(np.multiply.outer, rest, first[part]).astype(y.dtype)
    return y.astype(x.dtype, copy=False)


@v1.lower
def lower(x: Expression, /, *, count_include_pad: int = 0, **window: Any) -> Expression:
    return averaged(x, Window.of(**window), include_padding=bool(count_include_pad))


@v11.gradient
def gradient(g: Gradient, x: Value, /, *, count_include_pad: int, **window: Any) -> Value:
    return of_means(g, x, count_include_pad, window)


@average_pool.examples
def examples() -> Iterator[Example]:
    x, means = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3), [[[[3, 4], [6, 7]]]]
    for opset in (1, 7, 10, 11, 19, 22):
        yield Example(opset, x, kernel_shape=[2, 2], expect=[means])
        yield Example(opset, x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], expect=[means])
    row = np.array([[[3, 6, 9, 12, 15]]], np.float32)
    with_padding: dict[str, Any] = {"count_include_pad": 1, "expect": [[[[3, 9, 9]]]]}
    yield Example(7, row, kernel_shape=[3], pads=[1, 1], strides=[2], **with_padding)
    yield Example(10, row, kernel_shape=[2], strides=[2], ceil_mode=1, expect=[[[[4.5, 10.5, 15]]]])
    for opset in (10, 22):  # of the last window three taps are in the input, and one in the padding
        ends: dict[str, Any] = {"pads": [0, 1], "ceil_mode": 1, "count_include_pad": 1}
        yield Example(opset, row, kernel_shape=[5], strides=[3], expect=[[[[9, 9]]]], **ends)
    yield Example(11, row, kernel_shape=[2], auto_pad="SAME_UPPER", strides=[2], expect=[[[[4.5, 10.5, 15]]]])
    yield Example(11, row, kernel_shape=[2], auto_pad="SAME_LOWER", strides=[2], expect=[[[[3, 7.5, 13.5]]]])
    yield Example(11, row, kernel_shape=[2], auto_pad="VALID", strides=[2], expect=[[[[4.5, 10.5]]]])
    yield Example(19, row, kernel_shape=[2], dilations=[2], pads=[2, 0], expect=[[[[3, 6, 6, 9, 12]]]])
    large = row.astype(np.float16) * 4096  # their sums exceed float16
    yield Example(19, large, kernel_shape=[2], expect=[[[[18432, 30720, 43008, 55296]]]])
    yield Example(22, row.astype(ml_dtypes.bfloat16), kernel_shape=[2], expect=[[[[4.5, 7.5, 10.5, 13.5]]]])
    cube, empty = np.arange(8, dtype=float).reshape(1, 1, 2, 2, 2), np.zeros((1, 0, 4), np.float32)
    yield Example(22, cube, kernel_shape=[2, 2, 2], expect=[[[[[[3.5]]]]]])
    yield Example(22, empty, kernel_shape=[2], expect=[empty[..., :3]])
