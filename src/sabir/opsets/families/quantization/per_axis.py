"""QuantizeLinear and DequantizeLinear of onnxruntime: one scale, or one for each index of an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import TensorType
from sabir.opsets.families.quantization import quantization, quantization_kernels, quantized_graphs
from sabir.schema import Attribute, Unconvertible

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.elements import ElementType
    from sabir.ir import Builder, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array, BehaviourFunction
    from sabir.schema import Version

BYTE = 8  # bits
_DEFAULT = 1
_NIBBLES = 21  # the first opset with integers of 4 bits
AXIS = Attribute("axis", "int", "The axis along which scales differ, if they do; 1 when absent.")


def place(axis: int | None) -> int:
    """Return the axis along which scales differ."""
    return _DEFAULT if axis is None else axis


def infer_by(
    v1: Version, target: Callable[[TensorType, TensorType | None], ElementType]
) -> BehaviourFunction:
    """Attach and return the inference; `target` returns the element type by the scale and the zero point."""

    def infer(
        x: TensorType, scale: TensorType, zero: TensorType | None = None, /, *, axis: int | None
    ) -> TensorType:
        check(x, scale, zero, axis)
        return TensorType(target(scale, zero), x.shape)

    v1.infer(infer)
    return infer


def check(x: TensorType, scale: TensorType, zero: TensorType | None, axis: int | None) -> None:
    """Raise InferenceError for a scale and a zero point that do not fit `x`."""
    for parameter in (scale, zero):
        quantization.check_parameter(x, parameter, place(axis), 0)
    quantization.check_pair(scale, zero)


def spread(x: Array, scale: Array, zero: Array | None, axis: int | None) -> tuple[Array, Array | None]:
    """Return a scale and a zero point that broadcast to `x`."""
    found = None if zero is None else quantization.spread(zero, x.shape, place(axis), 0)
    return quantization.spread(scale, x.shape, place(axis), 0), found


def lowered(
    x: Expression, scale: Expression, zero: Expression | None, axis: int | None
) -> tuple[Expression, Expression | None]:
    """Return a scale and a zero point as expressions that broadcast to `x`."""
    found = None if zero is None else quantization_kernels.spread(zero, x, place(axis))
    return quantization_kernels.spread(scale, x, place(axis)), found


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
