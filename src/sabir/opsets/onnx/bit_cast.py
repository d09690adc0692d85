"""BitCast: the same bits as another element type."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import ElementType, element
from sabir.ir import TensorType
from sabir.loops import Expression, NotLowered
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    BOOL,
    COMPLEX,
    FLOAT4,
    FLOAT8,
    FLOAT8E8M0,
    INT2,
    INT4,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    element_types,
)

bit_cast = Operator("BitCast", summary="The bits of each element, read as the type `to` of the same width.")

T1 = Constraint("T1", NUMBERS, COMPLEX, FLOAT8, INT4, INT2, BFLOAT16, BOOL, FLOAT4, FLOAT8E8M0)
T2 = Constraint("T2", NUMBERS, COMPLEX, FLOAT8, INT4, INT2, BFLOAT16, BOOL, FLOAT4, FLOAT8E8M0)

v26 = bit_cast.first(
    26,
    inputs=[Input("input", T1, "A tensor of any shape.", differentiable=False)],
    outputs=[Output("output", T2, "The input's shape.", differentiable=False)],
    attributes=[
        Attribute(
            "to",
            "int",
            "The element type, as a number of TensorProto.DataType.",
            required=True,
            values=element_types("T2"),
        )
    ],
)

v26.absent("downgrade", "no older operator keeps the bits of a number under another type")


@v26.infer
def infer(x: TensorType, /, *, to: int) -> TensorType:
    target = element(to)
    if x.element.number:
        _check_width(x.element, target)
    return TensorType(target, x.shape)


@v26.evaluate
def evaluate(x: Array, /, *, to: int) -> Array:
    """Elements of fewer than eight bits occupy a byte each, of which the low bits count."""
    target = element(to)
    _check_width(element(x.dtype), target)
    return x.view(target.dtype)


@v26.lower
def lower(x: Expression, /, *, to: int) -> Expression:
    target = element(to)
    _check_width(element(x.element), target)
    if target.name == "bool" and x.element != "bool":
        raise NotLowered("kernels read truth values that are 0 or 1, and the bytes may be others")
    return loops.bits(x, target.name)


def _check_width(source: ElementType, target: ElementType) -> None:
    if _width(source) != _width(target):
        raise InferenceError(f"{source} and {target} are not of the same width")


def _width(kind: ElementType) -> int:
    return 8 if kind.kind == "bool" else kind.bits


v26.absent("gradient", "the bits of a number are no function that has a derivative")


@bit_cast.examples
def examples() -> Iterator[Example]:
    def call(x: Array, y: Array) -> Example:
        return Example(26, x, to=element(y.dtype).number, expect=[y])

    floats = np.array([[1.0, -0.0], [np.inf, -2.5]], np.float32)  # by hand, from the layout of IEEE 754
    bits = np.array([[0x3F800000, 0x80000000], [0x7F800000, 0xC0200000]], np.uint32)
    yield call(floats, bits)
    yield call(bits, floats)
    yield call(bits, bits.astype(np.int32))
    yield call(np.array([1.0, -2.0]), np.array([0x3FF << 52, -(1 << 62)]))
    yield call(np.array([0x3F80000040000000], np.uint64), np.array([2 + 1j], np.complex64))
    yield call(np.array([1.5 - 2j]), np.array([1.5 - 2j]))
    sixteen = np.array([0x3C00, 0x3F80], np.uint16)
    yield call(sixteen, np.array([1, 1.875], np.float16))
    yield call(sixteen, np.array([0x3C00, 0x3F80]).astype(np.int16))
    yield call(sixteen[1:], np.array([1], ml_dtypes.bfloat16))
    eight = np.array([0, 1, 0x38, 0xFF], np.uint8)
    yield call(eight, np.array([0, 1, 56, -1], np.int8))
    yield call(eight[:2], np.array([False, True]))
    yield call(np.array([True, False]), np.array([1, 0], np.int8))
    yield call(eight[2:3], np.array([1], ml_dtypes.float8_e4m3fn))
    yield call(eight[2:3], np.array([0.5], ml_dtypes.float8_e5m2))
    yield call(eight[1:3], np.array([2.0**-126, 2.0**-71], ml_dtypes.float8_e8m0fnu))
    four = np.array([0, 7, 8, 15]).astype(ml_dtypes.uint4)
    yield call(four, np.array([0, 7, -8, -1]).astype(ml_dtypes.int4))
    yield call(four, np.array([0, 6, -0.0, -6]).astype(ml_dtypes.float4_e2m1fn))
    yield call(
        np.array([0, -1, -2, 1]).astype(ml_dtypes.int2), np.array([0, 3, 2, 1]).astype(ml_dtypes.uint2)
    )
    yield call(np.array(1, np.float32), np.array(0x3F800000, np.int32))
    yield call(np.zeros((0, 2), np.float16), np.zeros((0, 2), np.int16))
