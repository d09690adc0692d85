"""QLinearConv of the standard and of onnxruntime: ports, inference, evaluation and lowering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir import loops
from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.quantization import quantization
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.shapes.ranks import check_one, check_shape
from sabir.opsets.families.windows.convolution import convolve, convolved_shape, kernel_of
from sabir.opsets.families.windows.windows import Window
from sabir.schema import Constraint, Input, Output, tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Expression
    from sabir.opsets.typing import Array

T1 = Constraint("T1", tensors("int8", "uint8"))
T2 = Constraint("T2", tensors("int8", "uint8"))
T3 = Constraint("T3", tensors("int8", "uint8"))
T4 = Constraint("T4", tensors("int32"))


def inputs(layout: str) -> list[Input]:
    """Return the ports of the operands; `layout` is the shape of `x`."""
    return [
        Input("x", T1, f"The input, {layout}."),
        Input("x_scale", "tensor(float)", "The scale of `x`, a scalar."),
        Input("x_zero_point", T1, "The number in `x`, and in its padding, that represents 0: a scalar."),
        Input("w", T2, "The filters, (M, C/group, k1, ..., kn)."),
        Input("w_scale", "tensor(float)", "The scale of `w`: a scalar or (M)."),
        Input("w_zero_point", T2, "The number in `w` that represents 0: a scalar or (M)."),
        Input("y_scale", "tensor(float)", "The scale of `y`, a scalar."),
        Input("y_zero_point", T3, "The number in `y` that represents 0: a scalar."),
        Input("B", T4, "The bias of each filter, (M), in units of `x_scale * w_scale`.", optional=True),
    ]


def outputs(layout: str) -> list[Output]:
    """Return the port of the result, which has the shape `layout`."""
    return [Output("y", T3, f"One channel for each filter, {layout}.")]


def infer(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    x: TensorType, x_scale: TensorType, x_zero: TensorType, w: TensorType, w_scale: TensorType,
    w_zero: TensorType, y_scale: TensorType, y_zero: TensorType, bias: TensorType | None = None, /,
    **attributes: Any,
) -> TensorType:  # fmt: skip
    """Return the type of the result; raises InferenceError for operands that do not fit."""
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


def evaluate(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    x: Array, x_scale: Array, x_zero: Array, w: Array, w_scale: Array, w_zero: Array, y_scale: Array,
    y_zero: Array, bias: Array | None = None, /, *, group: int, kernel_shape: Sequence[int] | None,
    **window: Any,
) -> Array:  # fmt: skip
    """Return the convolution of arrays (N, C, ...)."""
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


def lower(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    x: Expression, x_scale: Expression, x_zero: Expression, w: Expression, w_scale: Expression,
    w_zero: Expression, y_scale: Expression, y_zero: Expression, bias: Expression | None = None, /,
    **attributes: Any,
) -> Expression:  # fmt: skip
    """Return the convolution of expressions (N, C, ...)."""
    kernels.check_exact(w.shape[1:])
    y = kernels.convolved(x, w, x_zero, w_zero, **attributes)
    if bias is not None:  # a sum with 32 bits is exact as double
        y = loops.apply(
            "add", loops.cast(y, "double"), kernels.along_channels(loops.cast(bias, "double"), x.rank)
        )
    scales = loops.apply("mul", kernels.only(x_scale), kernels.along_channels(w_scale, x.rank))
    return kernels.requantized(y, loops.apply("div", scales, kernels.only(y_scale)), y_zero)
