"""AveragePool: the mean of each window."""

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families.arithmetic import widened
from sabir.opsets.families.pooling import folded, pooled_type
from sabir.opsets.families.windows import AUTO_PADS, Window
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
)

_BLOCK = 1 << 16  # windows whose sums are divided at a time

average_pool = Operator("AveragePool", summary="The mean of each window that slides over the spatial axes.")

T = Constraint("T", FLOATS)

v1 = average_pool.first(
    1,
    inputs=[Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True)],
    outputs=[Output("Y", T, "The means, (N, C, O1, ..., On).", differentiable=True)],
    attributes=[
        Attribute(
            "pads",
            "ints",
            "Padding of the axes: all the beginnings, then all the ends; none by default.",
            values=at_least(0),
        ),
        Attribute(
            "auto_pad",
            "string",
            "SAME_UPPER, SAME_LOWER: padded so that O = ceil(D / stride), the odd one at the end or the "
            "beginning; VALID: not padded; NOTSET: `pads`.",
            default="NOTSET",
            values=AUTO_PADS,
        ),
        Attribute(
            "strides", "ints", "The step between windows along each axis; 1 by default.", values=at_least(1)
        ),
        Attribute(
            "kernel_shape", "ints", "The window's size along each axis.", required=True, values=at_least(1)
        ),
    ],
)
v7 = v1.extend(
    7,
    "`count_include_pad` chooses whether padding counts; before, it never did.",
    attributes=[Attribute("count_include_pad", "int", "1: padding counts as zeros in the mean.", default=0)],
)
v10 = v7.extend(
    10,
    "A last window may pass the end (`ceil_mode`).",
    attributes=[
        Attribute("ceil_mode", "int", "1: a last window may pass the end, not start there.", default=0)
    ],
)
v11 = v10.restate(11, "States that strides are 1 by default, and how `ceil_mode` bears on `auto_pad`.")
v19 = v11.extend(
    19,
    "Windows may have gaps (`dilations`).",
    attributes=[
        Attribute(
            "dilations", "ints", "The step between a window's elements; 1 by default.", values=at_least(1)
        )
    ],
)
v22 = v19.widen(22, T=BFLOAT16)


@v1.infer
def infer(
    x: TensorType, /, *, kernel_shape: Sequence[int], strides: Sequence[int] | None,
    pads: Sequence[int] | None, auto_pad: str, dilations: Sequence[int] | None = None, ceil_mode: int = 0,
) -> TensorType:  # fmt: skip
    window = Window.of(
        kernel_shape, strides=strides, pads=pads, auto_pad=auto_pad, dilations=dilations, ceil_mode=ceil_mode
    )
    return pooled_type(x, window)


@v1.evaluate
def evaluate(
    x: Array, /, *, kernel_shape: Sequence[int], strides: Sequence[int] | None, pads: Sequence[int] | None,
    auto_pad: str, count_include_pad: int = 0, dilations: Sequence[int] | None = None, ceil_mode: int = 0,
) -> Array:  # fmt: skip
    window = Window.of(
        kernel_shape, strides=strides, pads=pads, auto_pad=auto_pad, dilations=dilations, ceil_mode=ceil_mode
    )
    axes = window.axes(x.shape[2:])
    y = folded(widened(x), axes, np.add, 0)
    first, *rest = [a.covered(padding=bool(count_include_pad)) for a in axes]
    step = max(1, _BLOCK // max(1, math.prod(map(len, rest))))
    for start in range(0, len(first), step):
        part = slice(start, start + step)
        y[:, :, part] /= functools.reduce(np.multiply.outer, rest, first[part]).astype(y.dtype)
    return y.astype(x.dtype, copy=False)


@average_pool.examples
def examples() -> Iterator[Example]:
    x = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    for opset in (1, 7, 10, 11, 19, 22):
        yield Example(opset, x, kernel_shape=[2, 2], expect=[np.array([[[[3, 4], [6, 7]]]], np.float32)])
        yield Example(opset, x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
                      expect=[np.array([[[[3, 4], [6, 7]]]], np.float32)])  # fmt: skip
    row = np.array([[[3, 6, 9, 12, 15]]], np.float32)
    yield Example(7, row, kernel_shape=[3], pads=[1, 1], strides=[2], count_include_pad=1,
                  expect=[np.array([[[3, 9, 9]]], np.float32)])  # fmt: skip
    yield Example(
        10,
        row,
        kernel_shape=[2],
        strides=[2],
        ceil_mode=1,
        expect=[np.array([[[4.5, 10.5, 15]]], np.float32)],
    )
    for opset in (10, 22):  # the last window has three of its taps in the input, one in the padding
        ends: dict[str, Any] = {"pads": [0, 1], "ceil_mode": 1, "count_include_pad": 1}
        means = np.array([[[9, 9]]], np.float32)
        yield Example(opset, row, kernel_shape=[5], strides=[3], expect=[means], **ends)
    yield Example(11, row, kernel_shape=[2], auto_pad="SAME_UPPER", strides=[2],
                  expect=[np.array([[[4.5, 10.5, 15]]], np.float32)])  # fmt: skip
    yield Example(11, row, kernel_shape=[2], auto_pad="SAME_LOWER", strides=[2],
                  expect=[np.array([[[3, 7.5, 13.5]]], np.float32)])  # fmt: skip
    yield Example(
        11,
        row,
        kernel_shape=[2],
        auto_pad="VALID",
        strides=[2],
        expect=[np.array([[[4.5, 10.5]]], np.float32)],
    )
    yield Example(
        19,
        row,
        kernel_shape=[2],
        dilations=[2],
        pads=[2, 0],
        expect=[np.array([[[3, 6, 6, 9, 12]]], np.float32)],
    )
    yield Example(
        19,
        row.astype(np.float16) * 4096,
        kernel_shape=[2],
        expect=[np.array([[[18432, 30720, 43008, 55296]]], np.float16)],
    )
    yield Example(
        22,
        row.astype(ml_dtypes.bfloat16),
        kernel_shape=[2],
        expect=[np.array([[[4.5, 7.5, 10.5, 13.5]]], ml_dtypes.bfloat16)],
    )
    yield Example(
        22,
        np.arange(8, dtype=float).reshape(1, 1, 2, 2, 2),
        kernel_shape=[2, 2, 2],
        expect=[np.full((1, 1, 1, 1, 1), 3.5)],
    )
    yield Example(
        22, np.zeros((1, 0, 4), np.float32), kernel_shape=[2], expect=[np.zeros((1, 0, 3), np.float32)]
    )
