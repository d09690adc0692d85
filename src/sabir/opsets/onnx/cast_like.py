"""CastLike: conversion to the element type of another tensor."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.elements import STRING as STRINGS
from sabir.elements import element
from sabir.ir import Builder, Item, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers import casting
from sabir.opsets.families.numbers import casting_kernels as kernels
from sabir.opsets.families.shapes import contents
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    BOOL,
    INT2,
    NUMBERS,
    STRING,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

cast_like = Operator("CastLike", summary="Each element converted, as by Cast, to the type of another tensor.")

T1 = Constraint("T1", NUMBERS, BFLOAT16, BOOL, STRING)
T2 = Constraint("T2", NUMBERS, BFLOAT16, BOOL, STRING)

v15 = cast_like.first(
    15,
    inputs=[
        Input("input", T1, "A tensor of any shape.", differentiable=True),
        Input("target_type", T2, "Only its element type matters.", differentiable=False),
    ],
    outputs=[Output("output", T2, "The shape of `input`.", differentiable=True)],
)
v24 = casting.admit_small_types(v15)
v25 = v24.widen(25, T1=INT2, T2=INT2)


@v15.infer
def infer(x: TensorType, like: TensorType, /, *, saturate: int = 1, round_mode: str = "up") -> TensorType:
    result = TensorType(like.element, x.shape)
    if not like.element.number or x.element is STRINGS:
        return result
    known = contents.array_of(x)
    if known is not None:  # the engine evaluates this only where it knows the contents of `like` too
        with np.errstate(all="ignore"):
            y = casting.converted(known, like.element, saturate=bool(saturate), round_mode=round_mode)
        return result.with_known(contents.of_array(y))

    def how(item: Item) -> Item:
        return casting.item_as(item, like.element)

    return contents.computed(result, how, x)


@v15.evaluate
def evaluate(x: Array, like: Array, /, *, saturate: int = 1, round_mode: str = "up") -> Array:
    return casting.converted(x, element(like.dtype), saturate=bool(saturate), round_mode=round_mode)


@v15.lower
def lower(x: Expression, like: Expression, /, *, saturate: int = 1, round_mode: str = "up") -> Expression:
    return kernels.converted(x, like.element, saturate=saturate != 0, round_mode=round_mode)


@v15.body
def body(b: Builder, x: Value, like: Value, /, **options: Any) -> Value:
    if not isinstance(like.type, TensorType) or not like.type.element.number:
        raise Unconvertible("the element type of `target_type` is unknown, and Cast needs it as an attribute")
    return b.Cast(x, to=like.type.element.number, **options)


@v15.gradient
def gradient(g: Gradient, x: Value, like: Value, /) -> tuple[Value, None]:
    return g.CastLike(g.dy, x), None


@cast_like.examples
def examples() -> Iterator[Example]:
    x = np.array([[1.9, -1.9, 0.0], [300.0, -0.25, 65536.0]], np.float32)
    whole = np.array([[1, -1, 0], [300, 0, 65536]])
    truth = np.array([[True, True, False], [True, True, True]])
    nothing = np.zeros((3, 0))
    for opset in (15, 19, 21, 23, 24, 25):
        yield Example(opset, x, nothing.astype(np.int64), expect=[whole])
        yield Example(opset, x, nothing.astype(bool), expect=[truth])
        yield Example(opset, truth, np.float64(7), expect=[truth * 1.0])
        yield Example(opset, x[:0], np.float16(7), expect=[np.zeros((0, 3), np.float16)])
        yield Example(opset, whole, x, expect=[whole.astype(np.float32)])
    yield Example(15, np.array([200, -129], np.int32), np.int8(0), expect=[[-56, 127]])
    texts = ["1", "-2.5", "NaN"]
    numbers = [1, -2.5, np.nan]
    yield Example(15, texts, x, expect=[numbers])
    yield Example(15, numbers, "", expect=[texts])
    one = [1.00390625, np.inf]  # halfway between two bfloat16 numbers: rounds to the even one
    brains = np.array([1, np.inf], ml_dtypes.bfloat16)
    yield Example(15, one, brains, expect=[brains])


@cast_like.examples
def small_types() -> Iterator[Example]:
    x = np.array([0.5, 1e6, -np.inf, np.nan])
    kind = ml_dtypes.float8_e4m3fn
    for opset in (19, 24):
        yield Example(opset, x, np.zeros(1, kind), expect=[[0.5, 448, -448, np.nan]])
        yield Example(opset, x, np.zeros(1, kind), saturate=0, expect=[[0.5, np.nan, np.nan, np.nan]])
    nibbles = np.array([7, -1]).astype(ml_dtypes.int4)
    yield Example(21, np.array([7, 15], np.uint8), nibbles, expect=[nibbles])
    fours = np.array([0.5, 6]).astype(ml_dtypes.float4_e2m1fn)
    yield Example(23, [0.5, 100], fours, expect=[fours])
    for mode, expected in {"up": [2, 4], "down": [1, 4], "nearest": [1, 4]}.items():
        powers = np.array(expected, ml_dtypes.float8_e8m0fnu)
        yield Example(24, np.array([1.1, 4.0]), powers, round_mode=mode, expect=[powers])
    pairs = np.array([-1, 1]).astype(ml_dtypes.int2)
    yield Example(25, [3, 1], pairs, expect=[pairs])
