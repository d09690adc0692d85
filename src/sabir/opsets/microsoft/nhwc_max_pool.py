"""NhwcMaxPool: MaxPool of bytes in tensors whose last axis has the channels."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.shapes.extents import shape_of
from sabir.opsets.families.windows import fused_convolution as layouts
from sabir.opsets.families.windows.pooling import pooled_type, reduce_windows
from sabir.opsets.families.windows.windows import (
    AUTO_PAD,
    CEIL_MODE,
    DILATIONS,
    KERNEL_SHAPE,
    PADS,
    STRIDES,
    Window,
)
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

nhwc_max_pool = Operator(
    "NhwcMaxPool",
    domain="com.microsoft",
    summary="The greatest element of each window over the spatial axes; the last axis has the channels.",
    body_opset=18,
)

T = Constraint("T", tensors("int8", "uint8"))

v1 = nhwc_max_pool.first(
    1,
    inputs=[Input("x", T, "The input, (N, D1, ..., Dn, C).")],
    outputs=[Output("y", T, "The maxima, (N, O1, ..., On, C).")],
    attributes=[PADS, STRIDES, CEIL_MODE, DILATIONS, KERNEL_SHAPE, AUTO_PAD],
)
v1.absent("gradient", "the elements are integers")


@v1.infer
def infer(x: TensorType, /, **window: Any) -> TensorType:
    return layouts.last_type(pooled_type(layouts.first_type(x), Window.of(**window)))


@v1.evaluate
def evaluate(x: Array, /, **window: Any) -> Array:
    planes = layouts.first(x)
    axes = Window.of(**window).axes(planes.shape[2:])
    return layouts.last(reduce_windows(planes, axes, np.maximum, np.iinfo(x.dtype).min))


@v1.body
def body(b: Builder, x: Value, /, **window: Any) -> Value:
    return layouts.emit_last(b, b.op("MaxPool", layouts.emit_first(b, x), **window), len(shape_of("x", x)))


@nhwc_max_pool.examples
def examples() -> Iterator[Example]:
    row = np.array([[[-5, 1], [3, 2], [-7, 9], [0, -128], [4, -128]]], np.int8)
    pairs: dict[str, Any] = {"kernel_shape": [2], "strides": [2]}
    yield Example(1, row, **pairs, expect=[[[[3, 2], [0, 9]]]])
    yield Example(1, row, **pairs, ceil_mode=1, expect=[[[[3, 2], [0, 9], [4, -128]]]])
    yield Example(1, row, **pairs, auto_pad="SAME_UPPER", expect=[[[[3, 2], [0, 9], [4, -128]]]])
    yield Example(1, row, kernel_shape=[2], dilations=[3], expect=[[[[0, 1], [4, 2]]]])
    bytes_ = np.arange(200, 254, dtype=np.uint8).reshape(1, 3, 3, 6)
    yield Example(1, bytes_, kernel_shape=[2, 2], pads=[1, 1, 0, 0], expect=[bytes_])
    yield Example(1, np.zeros((0, 2, 2, 1), np.int8), kernel_shape=[2, 1])
    cube = np.arange(8, dtype=np.uint8).reshape(1, 2, 2, 2, 1)
    yield Example(1, cube, kernel_shape=[2, 2, 2], expect=[[[[[[7]]]]]])
