"""QLinearConv: the convolution of quantized numbers, quantized again."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families import quantization
from sabir.opsets.families.convolution import convolve, convolved_shape, kernel_of
from sabir.opsets.families.ranks import check_one, check_shape
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

qlinear_conv = Operator(
    "QLinearConv",
    summary="`x - x_zero_point` convolved with `w - w_zero_point`, plus `B`, times `x_scale * w_scale / "
    "y_scale`, rounded, plus `y_zero_point`, saturated.",
)

T1 = Constraint("T1", tensors("int8", "uint8"))
T2 = Constraint("T2", tensors("int8", "uint8"))
T3 = Constraint("T3", tensors("int8", "uint8"))
T4 = Constraint("T4", tensors("int32"))

v10 = qlinear_conv.first(
    10,
    inputs=[
        Input("x", T1, "The input, (N, C, D1, ..., Dn)."),
        Input("x_scale", "tensor(float)", "One step of `x`, a scalar."),
        Input("x_zero_point", T1, "What stands for 0 in `x`, padding too, a scalar."),
        Input("w", T2, "The filters, (M, C/group, k1, ..., kn)."),
        Input("w_scale", "tensor(float)", "One step of `w`: a scalar or (M)."),
        Input("w_zero_point", T2, "What stands for 0 in `w`: a scalar or (M)."),
        Input("y_scale", "tensor(float)", "One step of `y`, a scalar."),
        Input("y_zero_point", T3, "What stands for 0 in `y`, a scalar."),
        Input("B", T4, "What to add for each filter, (M), in steps of `x_scale * w_scale`.", optional=True),
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
def infer(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    x: TensorType, x_scale: TensorType, x_zero: TensorType, w: TensorType, w_scale: TensorType,
    w_zero: TensorType, y_scale: TensorType, y_zero: TensorType, bias: TensorType | None = None, /, *,
    group: int, auto_pad: str, kernel_shape: Sequence[int] | None, strides: Sequence[int] | None,
    dilations: Sequence[int] | None, pads: Sequence[int] | None,
) -> TensorType:  # fmt: skip
    shape = convolved_shape(
        x, w, bias, group=group, auto_pad=auto_pad, kernel_shape=kernel_shape, strides=strides,
        dilations=dilations, pads=pads,
    )  # fmt: skip
    _check_scalars(x_scale, x_zero, y_scale, y_zero)
    for name, parameter in (("w_scale", w_scale), ("w_zero_point", w_zero)):
        quantization.check_filters(name, parameter, None if shape is None else shape[1])
    return TensorType(y_zero.element, shape)


def _check_scalars(*parameters: TensorType | Array) -> None:
    """Raise InferenceError where input or output would have more than one scale or zero point."""
    names = "x_scale", "x_zero_point", "y_scale", "y_zero_point"
    for name, parameter in zip(names, parameters, strict=True):
        check_one(name, parameter)


@v10.evaluate
def evaluate(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    x: Array, x_scale: Array, x_zero: Array, w: Array, w_scale: Array, w_zero: Array, y_scale: Array,
    y_zero: Array, bias: Array | None = None, /, *, group: int, auto_pad: str,
    kernel_shape: Sequence[int] | None, strides: Sequence[int] | None, dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
) -> Array:  # fmt: skip
    kernel = kernel_of(w.shape, kernel_shape)
    window = Window.of(kernel, strides=strides, pads=pads, auto_pad=auto_pad, dilations=dilations)
    _check_scalars(x_scale, x_zero, y_scale, y_zero)
    check_shape("B", bias, len(w))
    inputs = quantization.centred(x, x_zero.reshape(()))
    weights = quantization.centred(w, quantization.along_filters("w_zero_point", w_zero, w))
    addend = np.zeros(1) if bias is None else bias.astype(np.float64)
    most = quantization.largest(inputs) * quantization.largest(weights, tuple(range(1, w.ndim)))
    kind = quantization.exact_kind(most + quantization.largest(addend))
    y = convolve(
        inputs.astype(kind, copy=False), weights.astype(kind, copy=False), window.axes(x.shape[2:]), group
    )
    y += addend.astype(kind).reshape(-1, *(1,) * (x.ndim - 2))
    factor = x_scale.reshape(()) * quantization.along_filters("w_scale", w_scale, w) / y_scale.reshape(())
    channels = factor.reshape(factor.shape[: factor.ndim - 1]) if factor.ndim else factor
    return quantization.requantized(y, channels, y_zero.reshape(()), element(y_zero.dtype))


@qlinear_conv.examples
def examples() -> Iterator[Example]:
    f, i, u, s = np.float32, np.int32, np.uint8, np.int8
    one, none = f(1), u(0)
    x, w = np.arange(2, 11, dtype=u).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), u)
    # sums of four less a zero point of 1, by hand: 12, 16, 24, 28
    yield Example(10, x, f(0.5), u(1), w, one, none, f(4), u(3), expect=[np.array([[[[5, 5], [6, 7]]]], u)])
    yield Example(10, x, one, u(1), w, one, none, one, s(-100), np.array([120], i), pads=[1, 1, 0, 0],
                  expect=[np.array([[[[21, 23, 25], [25, 32, 36], [31, 44, 48]]]], s)])  # fmt: skip
    row, pair = np.array([[[1, 2, 3, 4, 255]]], u), np.array([[[1, -128]], [[127, 2]]], s)
    # each filter has its scale and zero point: sums -258, -516 and 125, 375 (see ConvInteger)
    yield Example(10, row, f(2), none, pair, np.array([0.25, 0.01], f), np.array([1, 2], s), f(2), u(200),
                  strides=[2], expect=[np.array([[[136, 71], [201, 204]]], u)])  # fmt: skip
    yield Example(10, row, one, none, pair, one, s(0), one, s(0), np.array([0, 2**24], i), strides=[2],
                  expect=[np.array([[[-128, -128], [127, 127]]], s)])  # fmt: skip
    two = np.array([[[1, 2], [3, 4]]], u)
    yield Example(10, two, one, none, np.array([[[2]], [[3]]], u), one, none, f(2), none, group=2,
                  kernel_shape=[1], expect=[np.array([[[1, 2], [4, 6]]], u)])  # fmt: skip
    yield Example(10, row, one, none, pair[:1], f(0.0078125), s(0), one, u(255), auto_pad="SAME_UPPER",
                  dilations=[2], expect=[np.array([[[253, 252, 251, 0, 255]]], u)])  # fmt: skip
    yield Example(10, np.zeros((0, 1, 3, 3), u), one, none, w, one, none, one, s(1),
                  expect=[np.zeros((0, 1, 2, 2), s)])  # fmt: skip
