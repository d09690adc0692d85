"""QuantizeLinear of onnxruntime: floats as integers of 4, 8 or 16 bits, by a scale and a zero point."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import FLOAT, UINT8, ElementType, element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.quantization import per_axis, quantization
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import INT4, Constraint, Example, Input, Operator, Output, tensors

quantize_linear = Operator(
    "QuantizeLinear",
    domain="com.microsoft",
    summary="`saturate(round(x / y_scale) + y_zero_point)`, ties to even, in the type of the zero point.",
    body_opset=18,
)

T1 = Constraint("T1", tensors("float", "float16"))
T2 = Constraint("T2", tensors("int8", "uint8", "int16", "uint16"), INT4)

v1 = quantize_linear.first(
    1,
    inputs=[
        Input("x", T1, "A tensor of any shape."),
        Input("y_scale", T1, "The scale of `y`: a scalar, or a vector along `axis`."),
        Input(
            "y_zero_point",
            T2,
            "The number that represents 0, in the shape of `y_scale`; the uint8 0 by default.",
            optional=True,
        ),
    ],
    outputs=[Output("y", T2, "The input's shape.")],
    attributes=[per_axis.AXIS],
)


def _target(_: TensorType, zero: TensorType | None) -> ElementType:
    return UINT8 if zero is None else zero.element


infer = per_axis.infer_by(v1, _target)


@v1.evaluate
def evaluate(x: Array, scale: Array, zero: Array | None = None, /, *, axis: int | None) -> Array:
    hold(infer, x, scale, zero, axis=axis)
    to = UINT8 if zero is None else element(zero.dtype)
    scale, zero = per_axis.spread(x, scale, zero, axis)
    return quantization.quantized(x, scale, zero, to, element(scale.dtype))


@v1.lower
def lower(
    x: Expression, scale: Expression, zero: Expression | None = None, /, *, axis: int | None
) -> Expression:
    scale, zero = per_axis.lowered(x, scale, zero, axis)
    return kernels.quantized(x, scale, zero, "uint8" if zero is None else zero.element)


@v1.body
def body(b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int | None) -> Value:
    to = UINT8 if zero is None else element_of(zero)
    per_axis.check_body(b, to)
    along = per_axis.place(axis)
    if to.bits == per_axis.BYTE and element_of(x) is FLOAT:
        return b.QuantizeLinear(x, *per_axis.operands(b, scale, zero), axis=along)
    quotient = b.Div(x, graphs.along(b, scale, along, x))
    wide = quotient if element_of(x) is FLOAT else b.Cast(quotient, to=FLOAT.number)
    return graphs.saturated(b, b.Round(wide), None if zero is None else graphs.along(b, zero, along, x), to)


v1.absent("gradient", "the results are rounded to integers, which have no gradients")


@quantize_linear.examples
def examples() -> Iterator[Example]:
    f, half = np.float32, np.float16
    x = np.array([[0, 1, 3, 5, 7], [-1, 1e30, -np.inf, np.nan, 255.4]], f)
    # by hand, in steps of 2; ties go to even
    yield Example(1, x, f(2), expect=[np.array([[0, 0, 2, 2, 4], [0, 255, 0, 0, 128]], np.uint8)])
    yield Example(
        1, x, f(2), np.int8(-3), expect=[np.array([[-3, -3, -1, -1, 1], [-3, 127, -128, -128, 125]], np.int8)]
    )
    yield Example(
        1, x[0], f(0.0001), np.uint16(5), expect=[np.array([5, 10005, 30005, 50005, 65535], np.uint16)]
    )
    yield Example(
        1,
        x[0],
        np.array([0.0001], f),
        np.array([7], np.int16),
        expect=[np.array([7, 10007, 30007, 32767, 32767], np.int16)],
    )
    table = np.array([[10, 20, 30], [40, 50, -60]], f)
    for dtype in (np.int8, np.uint8, np.int16, np.uint16):
        rows, columns = np.array([3, 4], dtype), np.array([0, 1, 2], dtype)
        yield Example(1, table, np.array([1, 10], f), rows, axis=0)
        yield Example(1, table, np.array([1, 10, 7], f), columns)
        yield Example(1, table, np.array([1, 10, 7], f), columns, axis=-1)
        yield Example(1, table[:0], f(1), dtype(0), expect=[np.zeros((0, 3), dtype)])
    for dtype, least, most in ((ml_dtypes.int4, -8, 7), (ml_dtypes.uint4, 0, 15)):
        y = np.array([0.5, 1.5, 100, -100, 3]), np.array([0, 2, most, least, 3]).astype(dtype)
        yield Example(1, y[0].astype(f), f(1), np.array(0, dtype), expect=[y[1]])
        yield Example(
            1, y[0].astype(f)[:, None], np.array([1], f), np.array([0], dtype), expect=[y[1][:, None]]
        )
    # 2049 is no float16; the quotient -101.5 is a tie
    yield Example(
        1, np.array([2048, -203], half), half(2), np.int16(1), expect=[np.array([1025, -101], np.int16)]
    )
    yield Example(1, np.array([3, 1], half), half(2), np.int8(0), expect=[np.array([2, 0], np.int8)])
