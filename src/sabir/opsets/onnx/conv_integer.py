"""ConvInteger: the convolution of 8-bit integers less their zero points, summed in 32 bits."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.elements import INT32
from sabir.ir import TensorType
from sabir.opsets.families.convolution import convolve, convolved_shape, kernel_of
from sabir.opsets.families.quantization import (
    along_filters,
    centred,
    check_filters,
    exact_kind,
    largest,
    wrapped,
)
from sabir.opsets.families.ranks import check_one
from sabir.opsets.families.windows import AUTO_PADS, Window
from sabir.opsets.typing import Array
from sabir.schema import (
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
    tensors,
)

conv_integer = Operator(
    "ConvInteger",
    summary="`x - x_zero_point` convolved with `w - w_zero_point`, as int32; beyond 32 bits it wraps around.",
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
            "What stands for 0 in `x`, padding too: a scalar, 0 by default.",
            optional=True,
        ),
        Input("w_zero_point", T2, "What stands for 0 in `w`: a scalar or (M), 0 by default.", optional=True),
    ],
    outputs=[Output("y", T3, "One channel for each filter, (N, M, O1, ..., On).")],
    attributes=[
        Attribute(
            "group",
            "int",
            "How many parts the channels fall into, each with filters of its own.",
            default=1,
            values=at_least(1),
        ),
        Attribute(
            "pads",
            "ints",
            "Padding of the axes: all the beginnings, then all the ends; none by default.",
            values=at_least(0),
        ),
        Attribute(
            "strides", "ints", "The step between windows along each axis; 1 by default.", values=at_least(1)
        ),
        Attribute(
            "dilations",
            "ints",
            "The step between a filter's elements along each axis; 1 by default.",
            values=at_least(1),
        ),
        Attribute(
            "kernel_shape",
            "ints",
            "The filters' spatial size, (k1, ..., kn); `w` tells it too.",
            values=at_least(1),
        ),
        Attribute(
            "auto_pad",
            "string",
            "SAME_UPPER, SAME_LOWER: padded so that O = ceil(D / stride), the odd one at the end or the "
            "beginning; VALID: not padded; NOTSET: `pads`.",
            default="NOTSET",
            values=AUTO_PADS,
        ),
    ],
)


@v10.infer
def infer(  # ruff: ignore[too-many-arguments]  the operator's signature
    x: TensorType, w: TensorType, x_zero: TensorType | None = None, w_zero: TensorType | None = None, /, *,
    group: int, auto_pad: str, kernel_shape: Sequence[int] | None, strides: Sequence[int] | None,
    dilations: Sequence[int] | None, pads: Sequence[int] | None,
) -> TensorType:  # fmt: skip
    shape = convolved_shape(
        x, w, None, group=group, auto_pad=auto_pad, kernel_shape=kernel_shape, strides=strides,
        dilations=dilations, pads=pads,
    )  # fmt: skip
    check_one("x_zero_point", x_zero)
    check_filters("w_zero_point", w_zero, None if shape is None else shape[1])
    return TensorType(INT32, shape)


@v10.evaluate
def evaluate(  # ruff: ignore[too-many-arguments]  the operator's signature
    x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None, /, *,
    group: int, auto_pad: str, kernel_shape: Sequence[int] | None, strides: Sequence[int] | None,
    dilations: Sequence[int] | None, pads: Sequence[int] | None,
) -> Array:  # fmt: skip
    kernel = kernel_of(w.shape, kernel_shape)
    window = Window.of(kernel, strides=strides, pads=pads, auto_pad=auto_pad, dilations=dilations)
    check_one("x_zero_point", x_zero)
    inputs = centred(x, None if x_zero is None else x_zero.reshape(()))
    weights = centred(w, None if w_zero is None else along_filters("w_zero_point", w_zero, w))
    kind = exact_kind(largest(inputs) * largest(weights, tuple(range(1, w.ndim))))
    y = convolve(
        inputs.astype(kind, copy=False), weights.astype(kind, copy=False), window.axes(x.shape[2:]), group
    )
    return wrapped(y)


@conv_integer.examples
def examples() -> Iterator[Example]:
    i, u, s = np.int32, np.uint8, np.int8
    x, w = np.arange(2, 11, dtype=u).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), u)
    yield Example(10, x, w, u(1), expect=[np.array([[[[12, 16], [24, 28]]]], i)])
    padded = [[1, 3, 5, 3], [5, 12, 16, 9], [11, 24, 28, 15], [7, 15, 17, 9]]  # padding stands for 0
    yield Example(10, x, w, u(1), pads=[1, 1, 1, 1], expect=[np.array([[padded]], i)])
    row, pair = np.array([[[1, 2, 3, 4, 255]]], u), np.array([[[1, -128]], [[127, 2]]], s)
    each = np.array([[[1 - 256, 3 - 512]], [[127 + 4, 381 + 8]]], i).reshape(1, 2, 2)
    yield Example(10, row, pair, strides=[2], expect=[each])
    centre = np.array([1, 2], s)  # a zero point for each filter
    lesser = [[0 - 129 * 2, 0 - 129 * 4], [125 + 0, 375 + 0]]
    yield Example(10, row, pair, u(0), centre, strides=[2], auto_pad="VALID", expect=[np.array([lesser], i)])
    yield Example(10, row, pair[:1], auto_pad="SAME_LOWER", dilations=[3],
                  expect=[np.array([[[-256, -384, 1 - 512, 2 - 32640, 3]]], i)])  # fmt: skip
    two = np.array([[[1, 2], [3, 4]]], u)
    yield Example(10, two, np.array([[[2]], [[3]]], u), group=2, kernel_shape=[1],
                  expect=[np.array([[[2, 4], [9, 12]]], i)])  # fmt: skip
    yield Example(
        10, np.full((1, 259, 1), 255, u), np.full((1, 259, 1), 255, u), expect=[np.array([[[16841475]]], i)]
    )
    yield Example(10, np.zeros((0, 1, 3, 3), u), w, expect=[np.zeros((0, 1, 2, 2), i)])
