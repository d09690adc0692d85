"""Operators on 8-bit tensors that have one scale and one zero point each, as onnxruntime declares them.

An absent zero point is 0 in the type of the tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.elements import FLOAT
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.quantization import quantization, quantization_kernels, quantized_graphs
from sabir.opsets.families.shapes.ranks import check_one
from sabir.schema import Input

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Builder, TensorType, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array
    from sabir.schema import Constraint


# ---------------------------------------------------------------- declaration


def parameters(
    scale: str, zero: str, of: Constraint, tensor: str, *, optional: bool = True,
    scale_type: Constraint | str = "tensor(float)",
) -> list[Input]:  # fmt: skip
    """Return the ports of the scale and the zero point of a tensor."""
    default = "; 0 by default" if optional else ""
    return [
        Input(scale, scale_type, f"The scale of `{tensor}`, a scalar."),
        Input(zero, of, f"The number in `{tensor}` that represents 0, a scalar{default}.", optional=optional),
    ]


def check(**tensors: tuple[TensorType | Array | None, ...]) -> None:
    """Raise InferenceError where a scale or a zero point, which are given by tensor, is no scalar."""
    for name, pair in tensors.items():
        for part, parameter in zip(("scale", "zero point"), pair, strict=True):
            check_one(f"the {part} of {name}", parameter)


# ---------------------------------------------------------------- evaluation


def centre(zero: Array | None) -> Array | None:
    """Return a zero point as a scalar."""
    return None if zero is None else zero.reshape(())


def as_floats(x: Array, scale: Array, zero: Array | None) -> Array:
    """Return `(x - zero) * scale` in float32."""
    return quantization.dequantized(x, scale.reshape(()), centre(zero), FLOAT)


def as_bytes(y: Array, scale: Array, zero: Array | None, to: ElementType) -> Array:
    """Return `round(y / scale) + zero`, saturated."""
    return quantization.quantized(y, scale.reshape(()), centre(zero), to, FLOAT)


def saturated_sum(y: Array, zero: Array | None, to: ElementType) -> Array:
    """Return `round(y + zero)`, saturated: the sum is rounded, so the zero point decides ties."""
    shifted = y if zero is None else y + centred_number(zero)
    return quantization.saturated(np.asarray(np.rint(shifted)), None, to)


def centred_number(zero: Array | None) -> np.float32:
    """Return a zero point as a float32."""
    return np.float32(0 if zero is None else zero.reshape(()))


# ---------------------------------------------------------------- expressions


def lowered_sum(y: Expression, zero: Expression | None, to: str) -> Expression:
    """Return `round(y + zero)`, saturated, as `saturated_sum`."""
    shifted = y if zero is None else loops.apply("add", y, number_of(zero))
    return quantization_kernels.saturated(shifted, None, to)


def number_of(zero: Expression | None) -> Expression:
    """Return a zero point as a float scalar."""
    if zero is None:
        return loops.number("float", 0)
    return loops.cast(quantization_kernels.only(zero), "float")


def lowered_floats(x: Expression, scale: Expression, zero: Expression | None) -> Expression:
    """Return `(x - zero) * scale` as floats."""
    only = quantization_kernels.only
    return quantization_kernels.dequantized(x, only(scale), None if zero is None else only(zero), "float")


# ---------------------------------------------------------------- graphs


def zero_of(b: Builder, zero: Value | None, x: Value) -> Value:
    """Return a zero point as a scalar, 0 in the type of `x` where it is absent."""
    if zero is None:
        return b.initializer("zero", np.zeros((), element_of(x).dtype))
    return quantized_graphs.single(b, zero)


def dequantize(b: Builder, x: Value, scale: Value, zero: Value | None) -> Value:
    """Emit DequantizeLinear with scalars."""
    return b.DequantizeLinear(x, quantized_graphs.single(b, scale), zero_of(b, zero, x))


def quantize(b: Builder, y: Value, scale: Value, zero: Value | None, x: Value) -> Value:
    """Emit QuantizeLinear with scalars; without a zero point, to the type of `x`."""
    return b.QuantizeLinear(y, quantized_graphs.single(b, scale), zero_of(b, zero, x))


def write_sum(b: Builder, y: Value, zero: Value | None, x: Value) -> Value:
    """Return `round(y + zero)`, saturated to the type of `x`, as `saturated_sum`."""
    if zero is not None:
        y = b.Add(y, as_number(b, zero))
    return quantized_graphs.saturated(b, b.Round(y), None, element_of(x))


def as_number(b: Builder, zero: Value | None) -> Value:
    """Return a zero point as a float scalar."""
    if zero is None:
        return Numbers(b, FLOAT)(0)
    return b.Cast(quantized_graphs.single(b, zero), to=FLOAT.number)


def centred(b: Builder, x: Value, zero: Value | None) -> Value:
    """Return `x - zero` as float, in which the difference is exact."""
    return quantized_graphs.centred(b, x, None if zero is None else quantized_graphs.single(b, zero), FLOAT)
