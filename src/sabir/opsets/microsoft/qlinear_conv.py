"""QLinearConv of onnxruntime: the convolution of quantized numbers, whose channels may be the last axis."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir import loops
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.quantization import quantized_convolutions as convolutions
from sabir.opsets.families.shapes.extents import shape_of
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.windows.convolution import ATTRIBUTES
from sabir.opsets.families.windows.layouts import (
    first_to_last,
    last_to_first,
    type_first_to_last,
    type_last_to_first,
)
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Operator

qlinear_conv = Operator(
    "QLinearConv",
    domain="com.microsoft",
    summary="QLinearConv of the standard, of channels that may be the last axis.",
    body_opset=18,
)

v1 = qlinear_conv.first(
    1,
    inputs=convolutions.inputs("(N, C, D1, ..., Dn), or (N, D1, ..., Dn, C) with `channels_last`"),
    outputs=convolutions.outputs("(N, M, O1, ..., On), or (N, O1, ..., On, M)"),
    attributes=[
        *ATTRIBUTES,
        Attribute("channels_last", "int", "1: the channels of `x` and `y` are the last axis.", default=0),
    ],
)


@v1.infer
def infer(x: TensorType, /, *operands: Any, channels_last: int, **attributes: Any) -> TensorType:
    if not channels_last:
        return convolutions.infer(x, *operands, **attributes)
    return type_first_to_last(convolutions.infer(type_last_to_first(x), *operands, **attributes))


@v1.evaluate
def evaluate(x: Array, /, *operands: Any, channels_last: int, **attributes: Any) -> Array:
    hold(infer, x, *operands, channels_last=channels_last, **attributes)
    if not channels_last:
        return convolutions.evaluate(x, *operands, **attributes)
    y = convolutions.evaluate(np.moveaxis(x, -1, 1), *operands, **attributes)
    return np.ascontiguousarray(np.moveaxis(y, 1, -1))


@v1.lower
def lower(x: Expression, /, *operands: Any, channels_last: int, **attributes: Any) -> Expression:
    if not channels_last:
        return convolutions.lower(x, *operands, **attributes)
    y = convolutions.lower(loops.permute(x, last_to_first(x.rank)), *operands, **attributes)
    return loops.permute(y, first_to_last(x.rank))


@v1.body
def body(b: Builder, x: Value, /, *operands: Any, channels_last: int, **attributes: Any) -> Value:
    if not channels_last:
        return b.QLinearConv(x, *operands, **attributes)
    rank = len(shape_of("x", x))
    y = b.QLinearConv(b.Transpose(x, perm=last_to_first(rank)), *operands, **attributes)
    return b.Transpose(y, perm=first_to_last(rank))


v1.absent("gradient", "the results are rounded to integers, which have no gradients")


@qlinear_conv.examples
def examples() -> Iterator[Example]:
    f, rng = np.float32, np.random.default_rng(0)
    one = np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)  # by hand: two filters of one row, plus 8 and 0
    call = f(1), np.uint8(1), np.array([[[1], [2], [0]], [[1], [0], [-1]]], np.int8), f(1), np.int8(0)
    y = np.rint(np.array([[[2 + 8, -2], [11 + 8, -2]]]) / 2) + 100
    yield Example(
        1,
        one,
        *call,
        f(2),
        np.uint8(100),
        np.array([8, 0], np.int32),
        channels_last=1,
        expect=[y.astype(np.uint8)],
    )
    for activation, weight in ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)):
        limits, own = np.iinfo(activation), np.iinfo(weight)
        x = rng.integers(limits.min, limits.max + 1, (2, 4, 7, 6)).astype(activation)
        w = rng.integers(own.min, own.max + 1, (6, 2, 3, 2)).astype(weight)
        scales = rng.uniform(0.01, 0.03, 6).astype(f), rng.integers(-2, 3, 6).astype(weight)
        bias = rng.integers(-1000, 1000, 6).astype(np.int32)
        whole = f(0.02), activation(17), w, f(0.01), weight(3), f(0.1), activation(60)
        each = f(0.02), activation(17), w, scales[0], np.full(6, weight(3)), f(0.1), activation(60), bias
        last = x.transpose(0, 2, 3, 1)
        yield Example(1, x, *whole, group=2)
        yield Example(1, x, *each, group=2, strides=[2, 1], pads=[1, 0, 2, 1])
        yield Example(1, last, *whole, group=2, channels_last=1, dilations=[2, 1])
        yield Example(1, last, *each, group=2, channels_last=1, auto_pad="SAME_UPPER", kernel_shape=[3, 2])
        alone = *whole[:2], w[:4, :1], *whole[3:]
        yield Example(1, last, *alone, group=4, channels_last=1, pads=[1, 1, 1, 1])
