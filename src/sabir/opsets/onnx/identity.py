"""Identity: its input, unchanged."""

import dataclasses
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Type, Value
from sabir.loops import Expression
from sabir.opsets.typing import Gradient
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT8,
    SMALL_TYPES,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    moving,
    optionals,
    sequences,
)

identity = Operator("Identity", summary="The input, unchanged.")

T = Constraint("T", CLASSIC)

v1 = identity.first(
    1,
    inputs=[Input("input", T, "Any value.", differentiable=True)],
    outputs=[Output("output", T, "The same value.", differentiable=True)],
)
v13 = v1.widen(13, T=BFLOAT16)
V = Constraint("V", CLASSIC, BFLOAT16, sequences(CLASSIC))
v14 = v13.evolve(
    14,
    "Admits sequences of tensors.",
    inputs=[Input("input", V, "Any value.", differentiable=True)],
    outputs=[Output("output", V, "The same value.", differentiable=True)],
)
v16 = v14.widen(16, V=optionals(CLASSIC | sequences(CLASSIC)))
v25 = v16.widen_stepwise({19: FLOAT8, **SMALL_TYPES}, "V")


@v1.infer
def infer(x: Type, /) -> Type:
    return dataclasses.replace(x, note=None)  # a file's note on a value does not apply to its copy


@v1.evaluate
@moving
def evaluate(x: object, /) -> object:
    return x


@v1.lower
def lower(x: Expression, /) -> Expression:
    return x


@v14.upgrade
def unchanged(b: Builder, x: Value, /) -> Value:
    return b.Identity(x)


@v14.downgrade
def tensors_only(b: Builder, x: Value, /) -> Value:
    if x.type is not None and not isinstance(x.type, TensorType):
        raise Unconvertible(f"Identity:13 admits tensors alone, not {x.type}")
    return b.Identity(x)


@v16.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.dy


@identity.examples
def examples() -> Iterator[Example]:
    x = np.array([[np.nan, -0.0, 1.5]], np.float32)
    for opset in (1, 13, 14, 16, 19, 21, 23, 24, 25):
        yield Example(opset, x, expect=[x])
        yield Example(opset, np.array("text", object), expect=[np.array("text", object)])
    yield Example(14, [x, -x], expect=[[x, -x]])
    yield Example(21, np.array([-8, 7], ml_dtypes.int4), expect=[np.array([-8, 7], ml_dtypes.int4)])
