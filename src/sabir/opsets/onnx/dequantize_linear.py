"""DequantizeLinear: the real numbers that quantized ones stand for."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT, ElementType, element
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.quantization import check_pair, check_parameter, dequantized, hold_against, spread
from sabir.opsets.families.ranks import check_one
from sabir.opsets.typing import Array
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
    at_least,
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
v13 = v10.extend(
    13,
    "A vector of scales goes along `axis`.",
    attributes=[Attribute("axis", "int", "The axis along which scales differ, if they do.", default=1)],
)
T1 = Constraint("T1", FLOAT8, tensors("int32", "int8", "uint8"))
T2 = Constraint("T2", BFLOAT16, tensors("float", "float16"))
v19 = v13.evolve(
    19,
    "Admits the 8-bit floats, and scales that are halves; the output has the type of the scale.",
    inputs=[
        Input("x", T1, "A tensor of any shape."),
        Input("x_scale", T2, "One step of `x`: a scalar, a vector along `axis`, or one for each block."),
        Input("x_zero_point", T1, "What stands for 0, shaped as `x_scale`; 0 by default.", optional=True),
    ],
    outputs=[Output("y", T2)],
)
v21 = v19.extend(
    21,
    "Scales may differ by blocks along `axis`; admits integers of 4 and 16 bits.",
    attributes=[
        Attribute(
            "block_size",
            "int",
            "How many elements along `axis` share a scale; 0: no blocks.",
            default=0,
            values=at_least(0),
        )
    ],
    widen={"T1": INT4 | tensors("int16", "uint16")},
)
T3 = Constraint("T3", BFLOAT16, tensors("float", "float16"))
v23 = v21.evolve(
    23,
    "`output_dtype` tells another output type than the scale's; admits float4e2m1.",
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
    if call.opset < v13.since:
        _check_whole(scale, zero)
    for parameter in (scale, zero):
        check_parameter(x, parameter, axis, block_size)
    check_pair(scale, zero)
    return TensorType(_target(scale.element, output_dtype, call.opset), x.shape)


def _target(scale: ElementType, output_dtype: int, opset: int) -> ElementType:
    wanted, version = element(output_dtype) if output_dtype else scale, dequantize_linear.at(opset)
    if wanted.number and f"tensor({wanted})" not in version.outputs[0].allowed:
        raise InferenceError(f"{version} does not give {wanted}; `output_dtype` can ask for another type")
    return wanted


@v10.evaluate
def evaluate_whole(x: Array, scale: Array, zero: Array | None = None, /) -> Array:
    _check_whole(scale, zero)
    return dequantized(x, scale.reshape(()), None if zero is None else zero.reshape(()), FLOAT)


def _check_whole(scale: TensorType | Array, zero: TensorType | Array | None) -> None:
    """Raise InferenceError for more than one scale, which DequantizeLinear-10 does not know."""
    check_one("x_scale", scale)
    check_one("x_zero_point", zero)


@v13.evaluate
def evaluate(
    x: Array, scale: Array, zero: Array | None = None, /, *, axis: int, block_size: int = 0,
    output_dtype: int = 0, call: Call,
) -> Array:  # fmt: skip
    to = _target(element(scale.dtype), output_dtype, call.opset)
    check_pair(scale, zero)
    zero = None if zero is None else spread(zero, x.shape, axis, block_size)
    return dequantized(x, spread(scale, x.shape, axis, block_size), zero, to)


# ---------------------------------------------------------------- adapters


@v13.downgrade
def one_scale(b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int) -> Value:
    if not isinstance(scale.type, TensorType) or scale.type.size != 1:
        raise Unconvertible("DequantizeLinear-10 takes one scale, and there may be several")
    return b.DequantizeLinear(x, scale, zero)


@v19.upgrade
@v23.upgrade
def same_call(b: Builder, /, *inputs: Value | None, **attributes: Any) -> Value:
    return b.op("DequantizeLinear", *inputs, **attributes)


@v19.downgrade
def only_float_scales(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int
) -> Value:
    hold_against(v13, x, None, zero)
    return _through_float(b, x, scale, zero, _element(scale), axis=axis)


@v21.downgrade
def no_blocks(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int, block_size: int
) -> Value:
    if block_size and not (isinstance(scale.type, TensorType) and scale.type.size == 1):
        raise Unconvertible("DequantizeLinear-19 knows no blocks")
    hold_against(v19, x, None, zero)
    return b.DequantizeLinear(x, scale, zero, axis=axis)


@v23.downgrade
def type_of_scale(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, output_dtype: int, **attributes: Any
) -> Value:
    hold_against(v21, x, None, zero)
    if not output_dtype or element(output_dtype) is _element(scale):
        return b.DequantizeLinear(x, scale, zero, **attributes)
    return _through_float(b, x, scale, zero, element(output_dtype), **attributes)


def _through_float(
    b: Builder, x: Value, scale: Value, zero: Value | None, to: ElementType, **attributes: Any
) -> Value:
    """Multiply in float, and round to the output's type afterwards."""
    wide = scale if _element(scale) is FLOAT else b.Cast(scale, to=FLOAT.number)
    y = b.DequantizeLinear(x, wide, zero, **attributes)
    return y if to is FLOAT else b.Cast(y, to=to.number)


def _element(value: Value) -> ElementType:
    if not isinstance(value.type, TensorType) or not value.type.element.number:
        raise Unconvertible("the type of the scale is unknown, and the output's depends on it")
    return value.type.element


# ---------------------------------------------------------------- examples

_ALL = (10, 13, 19, 21, 23, 24, 25, 28)


@dequantize_linear.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[0, 3, 128], [255, 1, 2]], np.uint8)
    for opset in _ALL:
        yield Example(
            opset, x, f(2), np.uint8(128), expect=[(np.array([[-256, -250, 0], [254, -254, -252]], f))]
        )
        yield Example(opset, np.array([-128, 127], np.int8), f(0.5), expect=[np.array([-64, 63.5], f)])
        yield Example(opset, np.array([2**31 - 1, -7], np.int32), f(1), expect=[np.array([2**31, -7], f)])
        # exact, where a difference of 32 bits would wrap
        yield Example(
            opset, np.array([2**31 - 1], np.int32), f(1), np.int32(-1), expect=[np.array([2**31], f)]
        )
        yield Example(opset, np.zeros((0, 2), np.int8), f(2), np.int8(1), expect=[np.zeros((0, 2), f)])
        yield Example(opset, np.int8(-3), f(np.inf), np.int8(-4), expect=[f(np.inf)])
    for opset in _ALL[1:]:
        yield Example(opset, x, np.array([1, 10], f), np.array([3, 4], np.uint8), axis=0,
                      expect=[np.array([[-3, 0, 125], [2510, -30, -20]], f)])  # fmt: skip
        yield Example(opset, x, np.array([1, 10, 100], f), axis=-1,
                      expect=[np.array([[0, 30, 12800], [255, 10, 200]], f)])  # fmt: skip
    for opset in _ALL[3:]:
        yield Example(opset, x, np.array([[1, 10], [2, 20]], f), np.array([[0, 1], [2, 3]], np.uint8), axis=1,
                      block_size=2, expect=[np.array([[0, 3, 1270], [506, -2, -20]], f)])  # fmt: skip
        yield Example(
            opset, x[1], np.array([1, 10], f), block_size=2, axis=0, expect=[np.array([255, 1, 20], f)]
        )
        wide = np.array([65535, 1], np.uint16), np.array([-32768, 1], np.int16)
        yield Example(opset, wide[0], f(1), np.uint16(65535), expect=[np.array([0, -65534], f)])
        yield Example(opset, wide[1], f(1), np.int16(32767), expect=[np.array([-65535, -32766], f)])


@dequantize_linear.examples
def types() -> Iterator[Example]:
    f, half, brain = np.float32, np.float16, ml_dtypes.bfloat16
    for opset in _ALL[2:]:
        for kind in (half, brain):
            yield Example(
                opset, np.array([3, -2], np.int8), np.array(0.5, kind), expect=[np.array([1.5, -1], kind)]
            )
        for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
            eight = np.array([1.5, -3, np.nan], getattr(ml_dtypes, name))
            yield Example(opset, eight, f(2), np.zeros_like(eight[0]), expect=[np.array([3, -6, np.nan], f)])
    for opset in _ALL[3:]:
        nibbles = np.array([-8, 7, 1]).astype(ml_dtypes.int4)
        yield Example(opset, nibbles, f(2), nibbles[2], expect=[np.array([-18, 12, 0], f)])
        yield Example(
            opset, np.array([15, 7]).astype(ml_dtypes.uint4), half(2), expect=[np.array([30, 14], half)]
        )
    for opset in _ALL[4:]:
        four = np.array([6, -0.5], ml_dtypes.float4_e2m1fn)
        yield Example(opset, four, f(2), expect=[np.array([12, -1], f)])
        x = np.array([30001, -3], np.int16)  # the product is rounded, not the factors
        yield Example(opset, x, f(0.5), output_dtype=10, expect=[np.array([15000.5, -1.5], half)])
        yield Example(opset, x, half(0.5), output_dtype=1, expect=[np.array([15000.5, -1.5], f)])
        yield Example(opset, x, half(0.5), output_dtype=16, expect=[np.array([15000.5, -1.5], brain)])
        yield Example(opset, x, half(0.5), output_dtype=10, expect=[np.array([15000.5, -1.5], half)])
    eighth = np.array([0.125, 4], ml_dtypes.float8_e8m0fnu)
    for opset in _ALL[5:]:
        yield Example(opset, np.array([[7, 1], [1, 3]], np.int8), eighth, axis=0, output_dtype=1,
                      expect=[np.array([[0.875, 0.125], [4, 12]], f)])  # fmt: skip
    for opset in _ALL[6:]:
        yield Example(opset, np.array([-2, 1]).astype(ml_dtypes.int2), f(2), expect=[np.array([-4, 2], f)])
        yield Example(opset, np.array([3, 1]).astype(ml_dtypes.uint2), f(2), expect=[np.array([6, 2], f)])
    for kind in (ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn):
        yield Example(28, np.array([7, -0.5], kind), f(2), expect=[np.array([14, -1], f)])
