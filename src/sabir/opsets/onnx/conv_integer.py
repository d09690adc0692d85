"""ConvInteger: the convolution of 8-bit integers minus their zero points, as 32-bit integers."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.elements import INT32, INT64
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.quantization.quantization import (
    along_filters,
    centred,
    check_filters,
    exact_kind,
    largest,
    wrapped,
)
from sabir.opsets.families.quantization.quantized_graphs import convolution
from sabir.opsets.families.shapes.ranks import check_one
from sabir.opsets.families.windows.convolution import ATTRIBUTES, convolve, convolved_shape, kernel_of
from sabir.opsets.families.windows.windows import Window
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

conv_integer = Operator(
    "ConvInteger",
    summary="`x - x_zero_point` convolved with `w - w_zero_point`, as int32, with overflow wrapping around.",
)

T1 = Constraint("T1", tensors("int8", "uint8"))
T2 = Constraint("T2", tensors("int8", "uint8"))
T3 = Constraint("T3", tensors("int32"))

v10 = conv_integer.first(
    10,
    inputs=[
        Input("x", T1, "The input, (N, C, D1, ..., Dn)."),
        Input("w", T2, "The filters, (M, C/group, k1, ..., kn)."),
        Input(
            "x_zero_point",
            T1,
            "The number in `x`, and in its padding, that represents 0: a scalar, 0 by default.",
            optional=True,
        ),
        Input(
            "w_zero_point",
            T2,
            "The number in `w` that represents 0: a scalar or (M), 0 by default.",
            optional=True,
        ),
    ],
    outputs=[Output("y", T3, "One channel for each filter, (N, M, O1, ..., On).")],
    attributes=ATTRIBUTES,
)


@v10.infer
def infer(
    x: TensorType, w: TensorType, x_zero: TensorType | None = None, w_zero: TensorType | None = None, /,
    **attributes: Any,
) -> TensorType:  # fmt: skip
    shape = convolved_shape(x, w, None, **attributes)
    check_one("x_zero_point", x_zero)
    check_filters("w_zero_point", w_zero, None if shape is None else shape[1])
    return TensorType(INT32, shape)


@v10.evaluate
def evaluate(
    x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None, /, *, group: int,
    kernel_shape: Sequence[int] | None, **window: Any,
) -> Array:  # fmt: skip
    axes = Window.of(kernel_of(w.shape, kernel_shape), **window).axes(x.shape[2:])
    check_one("x_zero_point", x_zero)
    inputs = centred(x, None if x_zero is None else x_zero.reshape(()))
    weights = centred(w, None if w_zero is None else along_filters("w_zero_point", w_zero, w))
    dtype = exact_kind(largest(inputs) * largest(weights, tuple(range(1, w.ndim))))
    y = convolve(inputs.astype(dtype, copy=False), weights.astype(dtype, copy=False), axes, group)
    return wrapped(y)


@v10.lower
def lower(
    x: Expression, w: Expression, x_zero: Expression | None = None, w_zero: Expression | None = None, /,
    **attributes: Any,
) -> Expression:  # fmt: skip
    return kernels.convolved(x, w, x_zero, w_zero, **attributes)


@v10.downgrade
def convolve_floats(
    b: Builder, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None, /,
    **attributes: Any,
) -> Value:  # fmt: skip
    """Cast the sums to int64 first, so that overflow wraps around."""
    y = b.Cast(convolution(b, x, w, x_zero, w_zero, **attributes), to=INT64.number)
    return b.Cast(y, to=INT32.number)


@conv_integer.examples
def examples() -> Iterator[Example]:
    i, u, s = np.int32, np.uint8, np.int8
    x, w = np.arange(2, 11, dtype=u).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), u)
    yield Example(10, x, w, 1, expect=[[[[[12, 16], [24, 28]]]]])
    padded = [[1, 3, 5, 3], [5, 12, 16, 9], [11, 24, 28, 15], [7, 15, 17, 9]]  # padding represents 0
    yield Example(10, x, w, 1, pads=[1, 1, 1, 1], expect=[[[padded]]])
    row, pair = np.array([[[1, 2, 3, 4, 255]]], u), np.array([[[1, -128]], [[127, 2]]], s)
    yield Example(10, row, pair, strides=[2], expect=[[[[1 - 256, 3 - 512], [127 + 4, 381 + 8]]]])
    less = [[0 - 129 * 2, 0 - 129 * 4], [125 + 0, 375 + 0]]  # with a zero point for each filter
    yield Example(10, row, pair, 0, [1, 2], strides=[2], auto_pad="VALID", expect=[[less]])
    apart = [-256, -384, 1 - 512, 2 - 32640, 3]
    yield Example(10, row, pair[:1], auto_pad="SAME_LOWER", dilations=[3], expect=[[[apart]]])
    two, each = np.array([[[1, 2], [3, 4]]], u), np.array([[[2]], [[3]]], u)
    yield Example(10, two, each, group=2, kernel_shape=[1], expect=[[[[2, 4], [9, 12]]]])
    yield Example(10, np.full((1, 259, 1), 255, u), np.full((1, 259, 1), 255, u), expect=[[[[16841475]]]])
    yield Example(10, np.zeros((0, 1, 3, 3), u), w, expect=[np.zeros((0, 1, 2, 2), i)])
