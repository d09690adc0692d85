"""QuantizeLinear and DequantizeLinear of onnxruntime: one scale, or one for each index of an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import TensorType
from sabir.opsets.families.quantization import quantization, quantized_graphs
from sabir.schema import Attribute, Unconvertible

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array

BYTE = 8  # bits
_DEFAULT = 1
_NIBBLES = 21  # the first opset with integers of 4 bits
AXIS = Attribute("axis", "int", "The axis along which scales differ, if they do; 1 when absent.")


def place(axis: int | None) -> int:
    """Return the axis along which scales differ."""
    return _DEFAULT if axis is None else axis


def check(x: TensorType, scale: TensorType, zero: TensorType | None, axis: int | None) -> None:
    """Raise InferenceError for a scale and a zero point that do not fit `x`."""
    for parameter in (scale, zero):
        quantization.check_parameter(x, parameter, place(axis), 0)
    quantization.check_pair(scale, zero)


def spread(x: Array, scale: Array, zero: Array | None, axis: int | None) -> tuple[Array, Array | None]:
    """Return a scale and a zero point that broadcast to `x`."""
    found = None if zero is None else quantization.spread(zero, x.shape, place(axis), 0)
    return quantization.spread(scale, x.shape, place(axis), 0), found


def operands(b: Builder, scale: Value, zero: Value | None) -> tuple[Value, Value | None]:
    """Return a scale and a zero point as the operators of the standard take them: scalars, or two vectors."""
    kind = scale.type
    if isinstance(kind, TensorType) and kind.size == 1:
        return quantized_graphs.single(b, scale), None if zero is None else quantized_graphs.single(b, zero)
    return scale, zero


def check_body(b: Builder, kind: ElementType) -> None:
    """Raise Unconvertible for integers of 4 bits where the opset does not have them."""
    if kind.bits < BYTE and b.opset < _NIBBLES:
        raise Unconvertible(f"opset {b.opset} has no {kind}")
