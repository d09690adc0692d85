"""QLinearConv: the convolution of quantized numbers, quantized again."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir import loops
from sabir.elements import DOUBLE, FLOAT, element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.quantization import quantization
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.shapes.extents import shape_of, unsqueezed
from sabir.opsets.families.shapes.ranks import check_one, check_shape
from sabir.opsets.families.windows.convolution import ATTRIBUTES, convolve, convolved_shape, kernel_of
from sabir.opsets.families.windows.windows import Window
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

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
        Input("x_scale", "tensor(float)", "The scale of `x`, a scalar."),
        Input("x_zero_point", T1, "The number in `x`, and in its padding, that represents 0: a scalar."),
        Input("w", T2, "The filters, (M, C/group, k1, ..., kn)."),
        Input("w_scale", "tensor(float)", "The scale of `w`: a scalar or (M)."),
        Input("w_zero_point", T2, "The number in `w` that represents 0: a scalar or (M)."),
        Input("y_scale", "tensor(float)", "The scale of `y`, a scalar."),
        Input("y_zero_point", T3, "The number in `y` that represents 0: a scalar."),
        Input("B", T4, "The bias of each filter, (M), in units of `x_scale * w_scale`.", optional=True),
    ],
    outputs=[Output("y", T3, "One channel for each filter, (N, M, O1, ..., On).")],
    attributes=ATTRIBUTES,
)


@v10.infer
def infer(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    x: TensorType, x_scale: TensorType, x_zero: TensorType, w: TensorType, w_scale: TensorType,
    w_zero: TensorType, y_scale: TensorType, y_zero: TensorType, bias: TensorType | None = None, /,
    **attributes: Any,
) -> TensorType:  # fmt: skip
    shape = convolved_shape(x, w, bias, **attributes)
    _check_scalars(x_scale, x_zero, y_scale, y_zero)
    for name, parameter in (("w_scale", w_scale), ("w_zero_point", w_zero)):
        quantization.check_filters(name, parameter, None if shape is None else shape[1])
    return TensorType(y_zero.element, shape)


def _check_scalars(*parameters: TensorType | Array) -> None:
    """Raise InferenceError if the input or the output has more than one scale or zero point."""
    names = "x_scale", "x_zero_point", "y_scale", "y_zero_point"
    for name, parameter in zip(names, parameters, strict=True):
        check_one(name, parameter)


@v10.evaluate
def evaluate(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    x: Array, x_scale: Array, x_zero: Array, w: Array, w_scale: Array, w_zero: Array, y_scale: Array,
    y_zero: Array, bias: Array | None = None, /, *, group: int, kernel_shape: Sequence[int] | None,
    **window: Any,
) -> Array:  # fmt: skip
    axes = Window.of(kernel_of(w.shape, kernel_shape), **window).axes(x.shape[2:])
    _check_scalars(x_scale, x_zero, y_scale, y_zero)
    check_shape("B", bias, len(w))
    inputs = quantization.centred(x, x_zero.reshape(()))
    weights = quantization.centred(w, quantization.along_filters("w_zero_point", w_zero, w))
    addend = np.zeros(1) if bias is None else bias.astype(np.float64)
    most = quantization.largest(inputs) * quantization.largest(weights, tuple(range(1, w.ndim)))
    dtype = quantization.exact_kind(most + quantization.largest(addend))
    y = convolve(inputs.astype(dtype, copy=False), weights.astype(dtype, copy=False), axes, group)
    y += addend.astype(dtype).reshape(-1, *(1,) * (x.ndim - 2))
    factor = x_scale.reshape(()) * quantization.along_filters("w_scale", w_scale, w) / y_scale.reshape(())
    channels = factor.reshape(factor.shape[: factor.ndim - 1]) if factor.ndim else factor
    return quantization.requantized(y, channels, y_zero.reshape(()), element(y_zero.dtype))


@v10.lower
def lower(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    x: Expression, x_scale: Expression, x_zero: Expression, w: Expression, w_scale: Expression,
    w_zero: Expression, y_scale: Expression, y_zero: Expression, bias: Expression | None = None, /,
    **attributes: Any,
) -> Expression:  # fmt: skip
    kernels.check_exact(w.shape[1:])
    y = kernels.convolved(x, w, x_zero, w_zero, **attributes)
    if bias is not None:  # a sum with 32 bits is exact as double
        y = loops.apply(
            "add", loops.cast(y, "double"), kernels.along_channels(loops.cast(bias, "double"), x.rank)
        )
    scales = loops.apply("mul", kernels.only(x_scale), kernels.along_channels(w_scale, x.rank))
    return kernels.requantized(y, loops.apply("div", scales, kernels.only(y_scale)), y_zero)


@v10.downgrade
def convolve_floats(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    b: Builder, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
    y_scale: Value, y_zero: Value, bias: Value | None = None, /, **attributes: Any,
) -> Value:  # fmt: skip
    y = graphs.convolution(b, x, w, x_zero, w_zero, **attributes)
    spatial = range(1, len(shape_of("x", x)) - 1)
    if bias is not None:  # a sum with 32 bits is exact as double
        addend = unsqueezed(b, b.Cast(bias, to=DOUBLE.number), spatial)
        y = b.Add(y if element_of(y) is DOUBLE else b.Cast(y, to=DOUBLE.number), addend)
    if element_of(y) is not FLOAT:
        y = b.Cast(y, to=FLOAT.number)
    each = unsqueezed(b, w_scale, spatial) if shape_of("w_scale", w_scale) else w_scale
    scales = b.Mul(graphs.single(b, x_scale), each)
    return graphs.requantized(b, y, b.Div(scales, graphs.single(b, y_scale)), y_zero)


@qlinear_conv.examples
def examples() -> Iterator[Example]:
    """Each input is followed by its scale and zero point, then come those of the output."""
    u, s = np.uint8, np.int8
    x, w = np.arange(2, 11, dtype=u).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), u)
    # sums of four minus a zero point of 1, by hand: 12, 16, 24, 28
    yield Example(10, x, 0.5, 1, w, 1, 0, 4, u(3), expect=[[[[[5, 5], [6, 7]]]]])
    y = [[21, 23, 25], [25, 32, 36], [31, 44, 48]]
    yield Example(10, x, 1, 1, w, 1, 0, 1, s(-100), [120], pads=[1, 1, 0, 0], expect=[[[y]]])
    row, pair = [[[1, 2, 3, 4, 255]]], np.array([[[1, -128]], [[127, 2]]], s)
    # each filter has its scale and zero point: sums -258, -516 and 125, 375 (see ConvInteger)
    call, y = (row, 2, u(0), pair, [0.25, 0.01], [1, 2], 2, u(200)), [[136, 71], [201, 204]]
    yield Example(10, *call, strides=[2], expect=[[y]])
    call, y = (row, 1, u(0), pair, 1, 0, 1, s(0), [0, 2**24]), [[-128, -128], [127, 127]]
    yield Example(10, *call, strides=[2], expect=[[y]])
    call = [[[1, 2], [3, 4]]], 1, u(0), [[[2]], [[3]]], 1, u(0), 2, u(0)
    yield Example(10, *call, group=2, kernel_shape=[1], expect=[[[[1, 2], [4, 6]]]])
    call, y = (row, 1, u(0), pair[:1], 0.0078125, 0, 1, u(255)), [253, 252, 251, 0, 255]
    yield Example(10, *call, auto_pad="SAME_UPPER", dilations=[2], expect=[[[y]]])
    yield Example(10, x[:0], 1, 0, w, 1, 0, 1, s(1), expect=[np.zeros((0, 1, 2, 2), s)])
