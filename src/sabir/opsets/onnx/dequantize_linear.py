"""DequantizeLinear: the real numbers that quantized numbers represent."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError, UnsupportedError
from sabir.elements import FLOAT, ElementType, element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.quantization.quantization import (
    AXIS,
    BLOCK_SIZE,
    check_pair,
    check_parameters,
    check_whole,
    dequantized,
    require_types,
    spread,
)
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    FLOAT4,
    FLOAT6,
    FLOAT8,
    FLOAT8E8M0,
    INT2,
    INT4,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    element_types,
    tensors,
)

dequantize_linear = Operator(
    "DequantizeLinear", summary="`(x - x_zero_point) * x_scale`, in the type of the scale or `output_dtype`."
)

T = Constraint("T", tensors("int32", "int8", "uint8"))

v10 = dequantize_linear.first(
    10,
    inputs=[Input("x", T), Input("x_scale", "tensor(float)"), Input("x_zero_point", T, optional=True)],
    outputs=[Output("y", "tensor(float)")],
)
v13 = v10.extend(13, "Scales may differ along `axis`.", attributes=[AXIS])
T1 = Constraint("T1", FLOAT8, tensors("int32", "int8", "uint8"))
T2 = Constraint("T2", BFLOAT16, tensors("float", "float16"))
v19 = v13.evolve(
    19,
    "Admits 8-bit floats, and 16-bit floats as scales; the output has the type of the scale.",
    inputs=[
        Input("x", T1, "A tensor of any shape."),
        Input("x_scale", T2, "The scale of `x`: a scalar, a vector along `axis`, or one for each block."),
        Input(
            "x_zero_point",
            T1,
            "The number that represents 0, in the shape of `x_scale`; 0 by default.",
            optional=True,
        ),
    ],
    outputs=[Output("y", T2)],
)
v21 = v19.extend(
    21,
    "Scales may differ by blocks along `axis`; admits integers of 4 and 16 bits.",
    attributes=[BLOCK_SIZE],
    widen={"T1": INT4 | tensors("int16", "uint16")},
)
T3 = Constraint("T3", BFLOAT16, tensors("float", "float16"))
v23 = v21.evolve(
    23,
    "`output_dtype` selects an output type other than that of the scale; admits float4e2m1.",
    outputs=[Output("y", T3, "The input's shape.")],
    add=[
        Attribute(
            "output_dtype",
            "int",
            "The output's type, as a number of TensorProto.DataType; 0: the scale's.",
            default=0,
            values=element_types("T3", unset=0),
        )
    ],
    widen={"T1": FLOAT4},
)
v24 = v23.widen(24, T2=FLOAT8E8M0)
v25 = v24.widen(25, T1=INT2)
v28 = v25.widen(28, T1=FLOAT6)


@v10.infer
def infer(
    x: TensorType, scale: TensorType, zero: TensorType | None = None, /, *, axis: int = 1,
    block_size: int = 0, output_dtype: int = 0, call: Call,
) -> TensorType:  # fmt: skip
    check_parameters("x", x, (scale, zero), axis, block_size, call)
    return TensorType(_target(scale.element, output_dtype, call.opset), x.shape)


def _target(scale: ElementType, output_dtype: int, opset: int) -> ElementType:
    wanted, version = element(output_dtype) if output_dtype else scale, dequantize_linear.at(opset)
    if wanted.number and f"tensor({wanted})" not in version.outputs[0].allowed:
        raise InferenceError(f"{version} cannot output {wanted}; select another type with `output_dtype`")
    return wanted


@v10.evaluate
def evaluate_whole(x: Array, scale: Array, zero: Array | None = None, /) -> Array:
    check_whole("x", scale, zero)
    return dequantized(x, scale.reshape(()), None if zero is None else zero.reshape(()), FLOAT)


@v13.evaluate
def evaluate(
    x: Array, scale: Array, zero: Array | None = None, /, *, axis: int, block_size: int = 0,
    output_dtype: int = 0, call: Call,
) -> Array:  # fmt: skip
    to = _target(element(scale.dtype), output_dtype, call.opset)
    check_pair(scale, zero)
    zero = None if zero is None else spread(zero, x.shape, axis, block_size)
    return dequantized(x, spread(scale, x.shape, axis, block_size), zero, to)


@v10.lower
def lower(
    x: Expression, scale: Expression, zero: Expression | None = None, /, *, axis: int = 1,
    block_size: int = 0, output_dtype: int = 0,
) -> Expression:  # fmt: skip
    blocks = kernels.BlockedTensor(x, scale, axis, block_size)
    to = element(output_dtype).name if output_dtype else scale.element
    zero = None if zero is None else blocks.parameter(zero)
    return blocks.joined(kernels.dequantized(blocks.x, blocks.parameter(scale), zero, to))


# ---------------------------------------------------------------- adapters


@v10.downgrade
def multiply(b: Builder, x: Value, scale: Value, zero: Value | None = None, /) -> Value:
    return graphs.dequantized(b, x, graphs.single(b, scale), None if zero is None else graphs.single(b, zero))


@v13.downgrade
def one_scale_or_product(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int
) -> Value:
    """Multiply where the scales differ along an axis, which DequantizeLinear:10 cannot."""
    if isinstance(scale.type, TensorType) and scale.type.size == 1:
        return b.DequantizeLinear(x, scale, zero)
    scale = graphs.along(b, scale, axis, x)
    return graphs.dequantized(b, x, scale, None if zero is None else graphs.along(b, zero, axis, x))


@v19.upgrade
@v23.upgrade
def same_call(b: Builder, /, *inputs: Value | None, **attributes: Any) -> Value:
    return b.op("DequantizeLinear", *inputs, **attributes)


@v19.downgrade
def only_float_scales(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int
) -> Value:
    require_types(v13, x, None, zero)
    return _through_float(b, x, scale, zero, _element(scale), axis=axis)


@v21.downgrade
def no_blocks(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int, block_size: int
) -> Value:
    if block_size and not (isinstance(scale.type, TensorType) and scale.type.size == 1):
        raise Unconvertible("DequantizeLinear:19 has no blocks")
    require_types(v19, x, None, zero)
    return b.DequantizeLinear(x, scale, zero, axis=axis)


@v23.downgrade
def type_of_scale(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, output_dtype: int, **attributes: Any
) -> Value:
    require_types(v21, x, None, zero)
    if not output_dtype or element(output_dtype) is _element(scale):
        return b.DequantizeLinear(x, scale, zero, **attributes)
    return _through_float(b, x, scale, zero, element(output_dtype), **attributes)


def _through_float(
    b: Builder, x: Value, scale: Value, zero: Value | None, to: ElementType, **attributes: Any
) -> Value:
    """Multiply in float, then round to the output type."""
    wide = scale if _element(scale) is FLOAT else b.Cast(scale, to=FLOAT.number)
    y = b.DequantizeLinear(x, wide, zero, **attributes)
    return y if to is FLOAT else b.Cast(y, to=to.number)


def _element(value: Value) -> ElementType:
    if not isinstance(value.type, TensorType) or not value.type.element.number:
        raise Unconvertible("the type of the scale is unknown, and the output type depends on it")
    return value.type.element


# ---------------------------------------------------------------- examples

_ALL = (10, 13, 19, 21, 23, 24, 25, 28)


@v13.gradient
def gradient(
    g: Gradient, x: Value, scale: Value, zero: Value | None = None, /, *,
    axis: int = 1, block_size: int = 0,
) -> tuple[Value, Value | None, None]:  # fmt: skip
    """A scale has the sum of what it multiplied; gradients of integers are floats, read by QuantizeLinear."""
    if block_size:
        if g.wants(1):
            raise UnsupportedError("DequantizeLinear passes no gradients to the scales of blocks")
        wide = g.Cast(graphs.spread_blocks(g, scale, axis, block_size, x), to=FLOAT.number)
        return _in_type(g, g.Mul(g.Cast(g.dy, to=FLOAT.number), wide), x), None, None
    one = g.initializer("one", np.ones((), _element(scale).dtype))
    steps = g.DequantizeLinear(x, g.Expand(one, g.sizes(scale)), zero, axis=axis)
    dy, part, spread = (
        g.Cast(v, to=FLOAT.number) for v in (g.dy, steps, graphs.spread_axis(g, scale, axis, x))
    )
    d_scale = g.Reshape(g.fit(g.Mul(dy, part), spread), g.sizes(scale), allowzero=1)
    return _in_type(g, g.Mul(dy, spread), x), g.Cast(d_scale, to=_element(scale).number), None


def _in_type(g: Gradient, dx: Value, x: Value) -> Value:
    """Return a gradient of numbers in their type, that of integers as it is."""
    return g.Cast(dx, to=_element(x).number) if _element(x).is_float else dx


@dequantize_linear.examples
def scales_and_blocks() -> Iterator[Example]:
    f = np.float32
    x = np.array([[0, 3, 128], [255, 1, 2]], np.uint8)
    for opset in _ALL:
        yield Example(opset, x, f(2), 128, expect=[np.array([[-256, -250, 0], [254, -254, -252]], f)])
        yield Example(opset, np.array([-128, 127], np.int8), 0.5, expect=[[-64, 63.5]])
        yield Example(opset, np.array([2**31 - 1, -7], np.int32), f(1), expect=[np.array([2**31, -7], f)])
        # exact, where a difference of 32 bits would wrap around
        yield Example(opset, np.array([2**31 - 1], np.int32), f(1), -1, expect=[np.array([2**31], f)])
        yield Example(opset, np.zeros((0, 2), np.int8), f(2), 1, expect=[np.zeros((0, 2), f)])
        yield Example(opset, np.int8(-3), f(np.inf), -4, expect=[f(np.inf)])
    for opset in _ALL[1:]:
        rows, columns = np.array([1, 10], f), np.array([1, 10, 100], f)
        by_row, by_column = [[-3, 0, 125], [2510, -30, -20]], [[0, 30, 12800], [255, 10, 200]]
        yield Example(opset, x, rows, [3, 4], axis=0, expect=[np.array(by_row, f)])
        yield Example(opset, x, columns, axis=-1, expect=[np.array(by_column, f)])
    for opset in _ALL[3:]:
        call, y = (x, np.array([[1, 10], [2, 20]], f), [[0, 1], [2, 3]]), [[0, 3, 1270], [506, -2, -20]]
        yield Example(opset, *call, axis=1, block_size=2, expect=[np.array(y, f)])
        call = x[1], np.array([1, 10], f)
        yield Example(opset, *call, block_size=2, axis=0, expect=[np.array([255, 1, 20], f)])
        unsigned, signed = np.array([65535, 1], np.uint16), np.array([-32768, 1], np.int16)
        yield Example(opset, unsigned, f(1), 65535, expect=[np.array([0, -65534], f)])
        yield Example(opset, signed, f(1), 32767, expect=[np.array([-65535, -32766], f)])


@dequantize_linear.examples
def types() -> Iterator[Example]:
    f, half, brain = np.float32, np.float16, ml_dtypes.bfloat16
    for opset in _ALL[2:]:
        for dtype in (half, brain):
            y = np.array([1.5, -1], dtype)
            yield Example(opset, np.array([3, -2], np.int8), np.array(0.5, dtype), expect=[y])
        for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
            eight = np.array([1.5, -3, np.nan], getattr(ml_dtypes, name))
            yield Example(opset, eight, f(2), 0, expect=[np.array([3, -6, np.nan], f)])
    for opset in _ALL[3:]:
        nibbles = np.array([-8, 7, 1]).astype(ml_dtypes.int4)
        yield Example(opset, nibbles, f(2), nibbles[2], expect=[np.array([-18, 12, 0], f)])
        unsigned = np.array([15, 7]).astype(ml_dtypes.uint4)
        yield Example(opset, unsigned, half(2), expect=[np.array([30, 14], half)])
    for opset in _ALL[4:]:
        four = np.array([6, -0.5], ml_dtypes.float4_e2m1fn)
        yield Example(opset, four, f(2), expect=[np.array([12, -1], f)])
        x, y = np.array([30001, -3], np.int16), [15000.5, -1.5]  # the product is rounded, not the factors
        for scale, dtype, number in ((f, half, 10), (half, f, 1), (half, brain, 16), (half, half, 10)):
            yield Example(opset, x, scale(0.5), output_dtype=number, expect=[np.array(y, dtype)])
    eighth = np.array([0.125, 4], ml_dtypes.float8_e8m0fnu)
    for opset in _ALL[5:]:
        call = np.array([[7, 1], [1, 3]], np.int8), eighth
        yield Example(opset, *call, axis=0, output_dtype=1, expect=[[[0.875, 0.125], [4, 12]]])
    for opset in _ALL[6:]:
        yield Example(opset, np.array([-2, 1]).astype(ml_dtypes.int2), f(2), expect=[np.array([-4, 2], f)])
        yield Example(opset, np.array([3, 1]).astype(ml_dtypes.uint2), f(2), expect=[np.array([6, 2], f)])
    for dtype in (ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn):
        yield Example(28, np.array([7, -0.5], dtype), f(2), expect=[np.array([14, -1], f)])
