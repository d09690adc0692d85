"""Inference, evaluation and adapters of QuantizeLinear."""

import itertools
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT, UINT8, ElementType, element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.quantization.quantization import (
    check_pair,
    check_parameters,
    check_whole,
    precision_of,
    quantized,
    require_types,
    spread,
)
from sabir.opsets.onnx.quantize_linear._history import quantize_linear
from sabir.opsets.typing import Array, BehaviourFunction
from sabir.schema import Call, Unconvertible, Version

v10, v13, v19, v21, v23, v24, v25, v28 = quantize_linear.versions


@v10.infer
def infer(
    x: TensorType, scale: TensorType, zero: TensorType | None = None, /, *, axis: int = 1,
    block_size: int = 0, output_dtype: int = 0, call: Call,
) -> TensorType:  # fmt: skip
    check_parameters("y", x, (scale, zero), axis, block_size, call)
    return TensorType(_target(None if zero is None else zero.element, output_dtype), x.shape)


def _target(zero: ElementType | None, output_dtype: int) -> ElementType:
    """Return the type to quantize to; zero point and attribute must not contradict each other."""
    if not output_dtype:
        return UINT8 if zero is None else zero
    wanted = element(output_dtype)
    if zero is not None and zero.number and zero is not wanted:
        raise InferenceError(f"output_dtype is {wanted}, and the zero point {zero}")
    return wanted


@v10.evaluate
def evaluate_whole(x: Array, scale: Array, zero: Array | None = None, /) -> Array:
    check_whole("y", scale, zero)
    zero = None if zero is None else zero.reshape(())
    return _quantized(x, scale.reshape(()), zero, UINT8 if zero is None else element(zero.dtype))


@v13.evaluate
def evaluate(
    x: Array, scale: Array, zero: Array | None = None, /, *, axis: int, saturate: int = 1,
    block_size: int = 0, output_dtype: int = 0, precision: int = 0,
) -> Array:  # fmt: skip
    to = _target(None if zero is None else element(zero.dtype), output_dtype)
    check_pair(scale, zero)
    scale = spread(scale, x.shape, axis, block_size)
    zero = None if zero is None else spread(zero, x.shape, axis, block_size)
    return _quantized(x, scale, zero, to, precision, saturate=saturate != 0)


def _quantized(
    x: Array, scale: Array, zero: Array | None, to: ElementType, precision: int = 0, *, saturate: bool = True
) -> Array:
    divided = precision_of(element(x.dtype), element(scale.dtype), precision)
    return quantized(x, scale, zero, to, divided, saturate=saturate)


@v10.lower
def lower(
    x: Expression, scale: Expression, zero: Expression | None = None, /, *, axis: int = 1, saturate: int = 1,
    block_size: int = 0, output_dtype: int = 0, precision: int = 0,
) -> Expression:  # fmt: skip
    to = zero.element if zero is not None else element(output_dtype).name if output_dtype else "uint8"
    blocks = kernels.BlockedTensor(x, scale, axis, block_size)
    zero = None if zero is None else blocks.parameter(zero)
    y = kernels.quantized(blocks.x, blocks.parameter(scale), zero, to, precision, saturate=saturate != 0)
    return blocks.joined(y)


# ---------------------------------------------------------------- adapters


@v10.downgrade
def divide(b: Builder, x: Value, scale: Value, zero: Value | None = None, /) -> Value:
    zero = None if zero is None else graphs.single(b, zero)
    return graphs.quantized(b, x, graphs.single(b, scale), zero, UINT8 if zero is None else element_of(zero))


@v13.downgrade
def one_scale_or_quotient(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int
) -> Value:
    """Divide where the scales differ along an axis, which QuantizeLinear:10 cannot."""
    if isinstance(scale.type, TensorType) and scale.type.size == 1:
        return b.QuantizeLinear(x, scale, zero)
    to = UINT8 if zero is None else element_of(zero)
    zero = None if zero is None else graphs.along(b, zero, axis, x)
    return graphs.quantized(b, x, graphs.along(b, scale, axis, x), zero, to)


@v19.upgrade
def one_type_for_scale(b: Builder, x: Value, /, *parameters: Value | None, axis: int) -> Value:
    """From 19 on integers have integer scales; converted to float, they are divided as before."""
    whole = isinstance(x.type, TensorType) and x.type.element.is_integer
    return b.op("QuantizeLinear", b.Cast(x, to=FLOAT.number) if whole else x, *parameters, axis=axis)


@v19.downgrade
def only_floats(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int, saturate: int
) -> Value:
    """`saturate` only affects element types that the older version does not admit."""
    require_types(v13, x, scale, zero)
    return b.QuantizeLinear(x, scale, zero, axis=axis)


@v21.downgrade
def type_by_zero_point(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int, saturate: int,
    output_dtype: int, block_size: int,
) -> Value:  # fmt: skip
    if block_size and not (isinstance(scale.type, TensorType) and scale.type.size == 1):
        raise Unconvertible("QuantizeLinear:19 knows no blocks")
    if output_dtype and zero is None:
        zero = _zero_point(b, scale, element(output_dtype))
    require_types(v19, x, scale, zero)
    return b.QuantizeLinear(x, scale, zero, axis=axis, saturate=saturate)


def _zero_point(b: Builder, scale: Value, to: ElementType) -> Value:
    """Return zeros of an element type in the shape of the scale."""
    shape = scale.type.shape if isinstance(scale.type, TensorType) else None
    if shape is None or not all(isinstance(d, int) for d in shape):
        raise Unconvertible("a zero point would state the type, and the shape of the scale is unknown")
    sizes = [d for d in shape if isinstance(d, int)]
    return b.initializer("zero", np.zeros(sizes, np.int8).astype(to.dtype))


@v23.upgrade
def same_precision(b: Builder, /, *inputs: Value | None, **attributes: Any) -> Value:
    return b.op("QuantizeLinear", *inputs, **attributes)


@v23.downgrade
def precision_by_type(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, precision: int, output_dtype: int,
    **attributes: Any,
) -> Value:  # fmt: skip
    """Before 23 both operands have the type to divide in, so they are converted to it."""
    types = [v.type.element if isinstance(v.type, TensorType) else None for v in (x, scale)]
    if types[0] is None or types[1] is None or not (types[0].number and types[1].number):
        raise Unconvertible("the element types are unknown, and must be equal before QuantizeLinear:23")
    kind = precision_of(types[0], types[1], precision)
    if types[1].is_integer and not precision:
        kind = types[1]
    converted = [
        v if t is kind else b.Cast(v, to=kind.number) for v, t in zip((x, scale), types, strict=True)
    ]
    require_types(v21, *converted, zero)
    _require_target(v21, output_dtype)
    return b.op("QuantizeLinear", *converted, zero, output_dtype=output_dtype, **attributes)


def _narrower(older: Version) -> BehaviourFunction:
    """Return the downgrade that also checks the output type, which an attribute may state."""

    def downgrade(b: Builder, /, *inputs: Value | None, output_dtype: int, **attributes: Any) -> Value:
        require_types(older, *inputs)
        _require_target(older, output_dtype)
        return b.op("QuantizeLinear", *inputs, output_dtype=output_dtype, **attributes)

    return downgrade


for _older, _newer in itertools.pairwise((v23, v24, v25, v28)):
    _newer.downgrade(_narrower(_older))


def _require_target(older: Version, output_dtype: int) -> None:
    if output_dtype and f"tensor({element(output_dtype)})" not in older.outputs[0].allowed:
        raise Unconvertible(f"{older} does not quantize to {element(output_dtype)}")
