"""QuantizeLinear: real numbers as small integers or floats, by a scale and a zero point."""

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT, UINT8, ElementType, element
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.quantization import check_parameter, precision_of, quantized, spread
from sabir.opsets.typing import Array, Rule
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
    Version,
    tensors,
)

quantize_linear = Operator(
    "QuantizeLinear",
    summary="`saturate(round(x / y_scale) + y_zero_point)`, ties to even, in the type of the zero point.",
)

T1 = Constraint("T1", tensors("float", "int32"))
T2 = Constraint("T2", tensors("int8", "uint8"))
ZERO = Input("y_zero_point", T2, "What stands for 0; uint8 zero by default.", optional=True)

v10 = quantize_linear.first(
    10,
    inputs=[Input("x", T1), Input("y_scale", "tensor(float)"), ZERO],
    outputs=[Output("y", T2)],
)
v13 = v10.extend(
    13,
    "A vector of scales goes along `axis`.",
    attributes=[
        Attribute("axis", "int", "The axis along which scales differ, if they do.", default=1),
    ],
)
v19 = v13.evolve(
    19,
    "Admits halves, whose scale has their own type, and the 8-bit floats with `saturate`.",
    inputs=[Input("x", T1), Input("y_scale", T1), ZERO],
    add=[
        Attribute(
            "saturate",
            "int",
            "For 8-bit floats, 1: beyond the range stands the greatest; 0: infinity or NaN.",
            default=1,
        )
    ],
    widen={"T1": BFLOAT16 | tensors("float16"), "T2": FLOAT8},
)
v21 = v19.extend(
    21,
    "Scales may differ by blocks along `axis`; `output_dtype` tells the type without a zero point.",
    attributes=[
        Attribute(
            "output_dtype",
            "int",
            "The output's type, as a number of TensorProto.DataType; 0: the zero point's, or uint8.",
            default=0,
        ),
        Attribute(
            "block_size", "int", "How many elements along `axis` share a scale; 0: no blocks.", default=0
        ),
    ],
    widen={"T2": INT4 | tensors("int16", "uint16")},
)
X = Constraint("T1", BFLOAT16, tensors("float", "float16", "int32"))
SCALE = Constraint("T2", BFLOAT16, tensors("float", "float16", "int32"))
T3 = Constraint("T3", FLOAT8, INT4, FLOAT4, tensors("int16", "int8", "uint16", "uint8"))
v23 = v21.evolve(
    23,
    "`x` and its scale may differ in type; the scale's, or `precision`, is the type to divide in.",
    inputs=[
        Input("x", X, "A tensor of any shape."),
        Input("y_scale", SCALE, "One step of `y`: a scalar, a vector along `axis`, or one for each block."),
        Input("y_zero_point", T3, "What stands for 0, shaped as `y_scale`; 0 by default.", optional=True),
    ],
    outputs=[Output("y", T3, "The input's shape.")],
    add=[
        Attribute(
            "precision",
            "int",
            "The type to divide in, as a number of TensorProto.DataType; 0: the scale's.",
            default=0,
        )
    ],
)
v24 = v23.widen(24, T2=FLOAT8E8M0)
v25 = v24.widen(25, T3=INT2)
v28 = v25.widen(28, T3=FLOAT6)


@v10.infer
def infer(
    x: TensorType, scale: TensorType, zero: TensorType | None = None, /, *, axis: int = 1,
    block_size: int = 0, output_dtype: int = 0, call: Call,
) -> TensorType:  # fmt: skip
    for parameter in (scale, zero):
        check_parameter(x, parameter, axis, block_size)
    return TensorType(_target(None if zero is None else zero.element, output_dtype, call.opset), x.shape)


def _target(zero: ElementType | None, output_dtype: int, opset: int) -> ElementType:
    """Return the type to quantize to, which zero point and attribute must agree on."""
    if not output_dtype:
        return UINT8 if zero is None else zero
    wanted, version = element(output_dtype), quantize_linear.at(opset)
    if zero is not None and zero.number and zero is not wanted:
        raise InferenceError(f"output_dtype is {wanted}, and the zero point {zero}")
    if f"tensor({wanted})" not in version.outputs[0].allowed:
        raise InferenceError(f"{version} does not quantize to {wanted}")
    return wanted


@v10.evaluate
def evaluate_whole(x: Array, scale: Array, zero: Array | None = None, /) -> Array:
    if scale.size != 1 or (zero is not None and zero.size != 1):
        raise ValueError("QuantizeLinear-10 takes one scale and one zero point for the whole tensor")
    return _quantized(x, scale, zero, UINT8 if zero is None else element(zero.dtype))


@v13.evaluate
def evaluate(
    x: Array, scale: Array, zero: Array | None = None, /, *, axis: int, saturate: int = 1,
    block_size: int = 0, output_dtype: int = 0, precision: int = 0, call: Call,
) -> Array:  # fmt: skip
    to = _target(None if zero is None else element(zero.dtype), output_dtype, call.opset)
    scale = spread(scale, x.shape, axis, block_size)
    zero = None if zero is None else spread(zero, x.shape, axis, block_size)
    return _quantized(x, scale, zero, to, precision, saturate=saturate != 0)


def _quantized(
    x: Array, scale: Array, zero: Array | None, to: ElementType, precision: int = 0, *, saturate: bool = True
) -> Array:
    divided = precision_of(element(x.dtype), element(scale.dtype), precision)
    return quantized(x, scale, zero, to, divided, saturate=saturate)


# ---------------------------------------------------------------- adapters


@v13.downgrade
def one_scale(b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int) -> Value:
    if not isinstance(scale.type, TensorType) or scale.type.size != 1:
        raise Unconvertible("QuantizeLinear-10 takes one scale, and there may be several")
    return b.QuantizeLinear(x, scale, zero)


@v19.upgrade
def one_type_for_scale(b: Builder, x: Value, /, *parameters: Value | None, axis: int) -> Value:
    """From 19 on an integer takes integer scales; as a float, it is divided as before."""
    whole = isinstance(x.type, TensorType) and x.type.element.is_integer
    return b.QuantizeLinear(b.Cast(x, to=FLOAT.number) if whole else x, *parameters, axis=axis)


@v19.downgrade
def only_floats(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int, saturate: int
) -> Value:
    """What `saturate` concerns, the older version does not have."""
    _require(v13, x, scale, zero)
    return b.QuantizeLinear(x, scale, zero, axis=axis)


@v21.downgrade
def type_by_zero_point(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int, saturate: int,
    output_dtype: int, block_size: int,
) -> Value:  # fmt: skip
    if block_size and not (isinstance(scale.type, TensorType) and scale.type.size == 1):
        raise Unconvertible("QuantizeLinear-19 knows no blocks")
    if output_dtype and zero is None:
        zero = _zero_point(b, scale, element(output_dtype))
    _require(v19, x, scale, zero)
    return b.QuantizeLinear(x, scale, zero, axis=axis, saturate=saturate)


def _zero_point(b: Builder, scale: Value, to: ElementType) -> Value:
    """Return zeros of a type, shaped as the scale."""
    shape = scale.type.shape if isinstance(scale.type, TensorType) else None
    if shape is None or not all(isinstance(d, int) for d in shape):
        raise Unconvertible("a zero point must tell the type, and the shape of the scale is unknown")
    sizes = [d for d in shape if isinstance(d, int)]
    return b.initializer("zero", np.zeros(sizes, np.int8).astype(to.dtype))


@v23.upgrade
def same_precision(b: Builder, /, *inputs: Value | None, **attributes: Any) -> Value:
    return b.QuantizeLinear(*inputs, **attributes)


@v23.downgrade
def precision_by_type(
    b: Builder, x: Value, scale: Value, zero: Value | None = None, /, *, precision: int, output_dtype: int,
    **attributes: Any,
) -> Value:  # fmt: skip
    """Before 23 both operands have the type to divide in, so they are converted to it first."""
    types = [v.type.element if isinstance(v.type, TensorType) else None for v in (x, scale)]
    if types[0] is None or types[1] is None or not (types[0].number and types[1].number):
        raise Unconvertible("the element types are unknown, and must be one before QuantizeLinear-23")
    kind = precision_of(types[0], types[1], precision)
    if types[1].is_integer and not precision:
        kind = types[1]
    converted = [
        v if t is kind else b.Cast(v, to=kind.number) for v, t in zip((x, scale), types, strict=True)
    ]
    _require(v21, *converted, zero)
    _require_target(v21, output_dtype)
    return b.QuantizeLinear(*converted, zero, output_dtype=output_dtype, **attributes)


def _narrower(older: Version) -> Rule:
    """Return the downgrade that checks the output's type too, which an attribute may tell."""

    def downgrade(b: Builder, /, *inputs: Value | None, output_dtype: int, **attributes: Any) -> Value:
        _require(older, *inputs)
        _require_target(older, output_dtype)
        return b.QuantizeLinear(*inputs, output_dtype=output_dtype, **attributes)

    return downgrade


for _older, _newer in itertools.pairwise((v23, v24, v25, v28)):
    _newer.downgrade(_narrower(_older))


def _require(older: Version, *inputs: Value | None) -> None:
    for port, value in zip(older.inputs, inputs, strict=False):
        if value is not None:
            signature = value.type.signature if isinstance(value.type, TensorType) else None
            if signature is not None and signature not in port.allowed:
                raise Unconvertible(f"{older} does not admit {signature} for {port.name!r}")


def _require_target(older: Version, output_dtype: int) -> None:
    if output_dtype and f"tensor({element(output_dtype)})" not in older.outputs[0].allowed:
        raise Unconvertible(f"{older} does not quantize to {element(output_dtype)}")


# ---------------------------------------------------------------- examples

_ALL = (10, 13, 19, 21, 23, 24, 25, 28)


@quantize_linear.examples
def whole_tensors() -> Iterator[Example]:
    f = np.float32
    x = np.array([[0, 1, 3, 5, 7], [-1, 1e30, -np.inf, np.nan, 255.4]], f)
    halved = np.array([[0, 0, 2, 2, 4], [0, 255, 0, 0, 128]], np.uint8)  # by hand: ties go to even
    shifted = np.array([[-3, -3, -1, -1, 1], [-3, 127, -128, -128, 125]], np.int8)
    for opset in _ALL:
        yield Example(opset, x, f(2), expect=[halved])
        yield Example(opset, x, f(2), np.int8(-3), expect=[shifted])
        yield Example(opset, np.zeros((0, 2), f), f(2), expect=[np.zeros((0, 2), np.uint8)])
        yield Example(opset, f(-9.5), f(1), np.uint8(10), expect=[np.uint8(0)])
    for opset in (10, 13):
        yield Example(opset, np.array([7, 2**31 - 1], np.int32), f(2), expect=[np.array([4, 255], np.uint8)])
    counts = np.array([5, -(2**31), 7], np.int32)
    for opset in (19, 23):  # 5/2 and 7/2 are ties
        yield Example(opset, counts, np.int32(2), np.int8(1), expect=[np.array([3, -128, 5], np.int8)])
    yield Example(13, x, np.array([2], f), np.array([-3], np.int8), axis=7, expect=[shifted])


@quantize_linear.examples
def axes_and_blocks() -> Iterator[Example]:
    f = np.float32
    x = np.array([[10, 20, 30], [40, 50, -60]], f)
    for opset in _ALL[1:]:
        yield Example(opset, x, np.array([1, 10], f), np.array([3, 4], np.uint8), axis=0,
                      expect=[np.array([[13, 23, 33], [8, 9, 0]], np.uint8)])  # fmt: skip
        yield Example(opset, x, np.array([1, 10, 100], f), axis=-1,
                      expect=[np.array([[10, 2, 0], [40, 5, 0]], np.uint8)])  # fmt: skip
    for opset in _ALL[3:]:  # the second block of a row has one element
        yield Example(opset, x, np.array([[1, 10], [4, 20]], f), np.array([[0, 1], [2, 3]], np.int8), axis=1,
                      block_size=2, expect=[np.array([[10, 20, 4], [12, 14, 0]], np.int8)])  # fmt: skip
        yield Example(opset, x[0], np.array([10, 1], f), axis=0, block_size=2, output_dtype=5,
                      expect=[np.array([1, 2, 30], np.int16)])  # fmt: skip
        yield Example(opset, x, np.array([1, 10], f), axis=0, output_dtype=2,
                      expect=[np.array([[10, 20, 30], [4, 5, 0]], np.uint8)])  # fmt: skip
        yield Example(opset, x, f(1e-4), np.uint16(5), block_size=3,
                      expect=[np.array([[65535] * 3, [65535, 65535, 0]], np.uint16)])  # fmt: skip


@quantize_linear.examples
def small_types() -> Iterator[Example]:
    f = np.float32
    x = np.array([0.5, 1e6, -1e6, 17, -3.4], f)
    float8 = {
        "float8_e4m3fn": (448, np.nan, 18),
        "float8_e4m3fnuz": (240, np.nan, 18),
        "float8_e5m2": (57344, np.inf, 16),
        "float8_e5m2fnuz": (57344, np.nan, 16),
    }
    for name, (most, over, near) in float8.items():
        kind = np.dtype(getattr(ml_dtypes, name))
        saturated, unlimited = (np.array([0.5, end, -end, 16, -3.5], kind) for end in (most, over))
        for opset in (19, 21, 23):
            yield Example(opset, x, f(1), np.zeros((), kind), expect=[saturated])
            yield Example(opset, x, f(1), np.zeros((), kind), saturate=0, expect=[unlimited])
        # a zero point of 1 is added before the rounding
        yield Example(21, x, f(1), np.array(1, kind), expect=[np.array([1.5, most, -most, near, -2.5], kind)])
    integers = {"int4": [0, 7, -8, 7, -3], "uint4": [0, 15, 0, 15, 0]}
    twos = {"int2": [0, 1, -2, 1, -2], "uint2": [0, 3, 0, 3, 0]}
    for opset, wanted in ((21, integers), (25, integers | twos)):
        for name, expected in wanted.items():
            kind = np.dtype(getattr(ml_dtypes, name))
            yield Example(opset, x, f(1), np.zeros((), kind), expect=[np.array(expected).astype(kind)])
            yield Example(
                opset, x, f(1), output_dtype=element(kind).number, expect=[np.array(expected).astype(kind)]
            )
    four = np.dtype(ml_dtypes.float4_e2m1fn)
    yield Example(23, x, f(1), output_dtype=23, expect=[np.array([0.5, 6, -6, 6, -3], four)])
    yield Example(23, x, f(2), np.array(1, four), expect=[np.array([1, 6, -6, 6, -0.5], four)])
    for kind, expected in ((ml_dtypes.float6_e2m3fn, [0.5, 7.5, -7.5, 7.5, -3.5]),
                           (ml_dtypes.float6_e3m2fn, [0.5, 28, -28, 16, -3.5])):  # fmt: skip
        yield Example(28, x, f(1), np.zeros((), kind), expect=[np.array(expected, kind)])


@quantize_linear.examples
def precisions() -> Iterator[Example]:
    f, half, brain = np.float32, np.float16, ml_dtypes.bfloat16
    # 2049 is no float16, its quotient by 1 is 2048 there, and 2049 otherwise
    x = np.array([2049, -101.49], f)
    exact, coarse = np.array([2049, -101], np.int16), np.array([2048, -102], np.int16)
    for opset in (23, 24, 25, 28):
        yield Example(opset, x, f(1), np.int16(0), expect=[exact])
        yield Example(opset, x, half(1), np.int16(0), expect=[coarse])
        yield Example(opset, x, f(1), np.int16(0), precision=10, expect=[coarse])
        yield Example(opset, x, half(1), np.int16(0), precision=1, expect=[exact])
        yield Example(opset, x, brain(1), np.int16(0), expect=[coarse])
        yield Example(opset, np.array([7, -3], np.int32), f(2), expect=[np.array([4, 0], np.uint8)])
    for opset in (19, 21):
        yield Example(opset, np.array([3, 1], half), half(2), np.int8(0), expect=[np.array([2, 0], np.int8)])
        yield Example(opset, np.array([3, 1], brain), brain(2), expect=[np.array([2, 0], np.uint8)])
    two = np.array(2, ml_dtypes.float8_e8m0fnu)
    for opset in (24, 28):
        yield Example(opset, np.array([4098, 3], f), two, np.int16(0), expect=[np.array([2049, 2], np.int16)])
        yield Example(
            opset, np.array([4098, 3], np.int32), two, np.int16(0), expect=[np.array([2049, 2], np.int16)]
        )
