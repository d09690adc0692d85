"""DequantizeLinear of onnxruntime: integers of 4 to 32 bits as floats, by a scale and a zero point."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import FLOAT, INT32, ElementType, element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.quantization import per_axis, quantization
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import INT4, Constraint, Example, Input, Operator, Output, tensors

dequantize_linear = Operator(
    "DequantizeLinear",
    domain="com.microsoft",
    summary="`(x - x_zero_point) * x_scale` in the type of the scale.",
    body_opset=18,
)

T1 = Constraint("T1", tensors("int8", "uint8", "int16", "uint16", "int32"), INT4)
T2 = Constraint("T2", tensors("float", "float16"))

v1 = dequantize_linear.first(
    1,
    inputs=[
        Input("x", T1, "A tensor of any shape."),
        Input("x_scale", T2, "The scale of `x`: a scalar, or a vector along `axis`."),
        Input(
            "x_zero_point",
            T1,
            "The number that represents 0, in the shape of `x_scale`; 0 by default.",
            optional=True,
        ),
    ],
    outputs=[Output("y", T2, "The input's shape.")],
    attributes=[per_axis.AXIS],
)


def _target(scale: TensorType, _: TensorType | None) -> ElementType:
    return scale.element


infer = per_axis.infer_by(v1, _target)


@v1.evaluate
def evaluate(x: Array, scale: Array, zero: Array | None = None, /, *, axis: int | None) -> Array:
    hold(infer, x, scale, zero, axis=axis)
    to = element(scale.dtype)
    scale, zero = per_axis.spread(x, scale, zero, axis)
    return quantization.dequantized(x, scale, zero, to)


@v1.lower
def lower(
    x: Expression, scale: Expression, zero: Expression | None = None, /, *, axis: int | None
) -> Expression:
    return kernels.dequantized(x, *per_axis.lowered(x, scale, zero, axis), scale.element)


@v1.body
def body(b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int | None) -> Value:
    of, to, along = element_of(x), element_of(scale), per_axis.place(axis)
    per_axis.check_body(b, of)
    wide = scale if to is FLOAT else b.Cast(scale, to=FLOAT.number)
    if of.bits == per_axis.BYTE or (of is INT32 and zero is None):
        y = b.DequantizeLinear(x, *per_axis.operands(b, wide, zero), axis=along)
    else:
        shift = None if zero is None else graphs.along(b, zero, along, x)
        y = graphs.dequantized(b, x, graphs.along(b, wide, along, x), shift)
    return y if to is FLOAT else b.Cast(y, to=to.number)


@dequantize_linear.examples
def examples() -> Iterator[Example]:
    f, half = np.float32, np.float16
    x = np.array([[0, 3, 127], [100, 1, 2]])
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32):  # by hand
        numbers, seven = x.astype(dtype), dtype(7)
        yield Example(1, numbers, f(2), seven, expect=[np.array(2 * (x - 7), f)])
        yield Example(1, numbers, half(0.5), expect=[np.array(0.5 * x, half)])
        by_row = np.array([1, 10], f), np.array([3, 4], dtype)
        yield Example(1, numbers, *by_row, axis=0, expect=[np.array([x[0] - 3, 10 * (x[1] - 4)], f)])
        by_column = np.array([1, 10, 100], f), np.array([0, 1, 2], dtype)
        for axis in (None, -1):
            yield Example(
                1, numbers, *by_column, axis=axis, expect=[np.array((x - [0, 1, 2]) * [1, 10, 100], f)]
            )
        yield Example(1, numbers[:0], np.array([1.5], f), np.array([0], dtype), expect=[np.zeros((0, 3), f)])
    for dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        nibbles = np.array([7, 0, 1]).astype(dtype)
        yield Example(1, nibbles, f(2), nibbles[2], expect=[np.array([12, -2, 0], f)])
        yield Example(1, nibbles, half(2), expect=[np.array([14, 0, 2], half)])
    yield Example(1, np.array([2**31 - 1, -7], np.int32), f(1), expect=[np.array([2**31, -7], f)])
