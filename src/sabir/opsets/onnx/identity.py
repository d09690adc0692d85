"""Identity: its input, as it is."""

import dataclasses
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Type, Value
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT4,
    FLOAT8,
    FLOAT8E8M0,
    INT2,
    INT4,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
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
v19 = v16.widen(19, V=FLOAT8)
v21 = v19.widen(21, V=INT4)
v23 = v21.widen(23, V=FLOAT4)
v24 = v23.widen(24, V=FLOAT8E8M0)
v25 = v24.widen(25, V=INT2)


@v1.infer
def infer(x: Type, /) -> Type:
    return dataclasses.replace(x, note=None)  # what a file remarks on a value is not true of its copy


@v1.evaluate
def evaluate(x: object, /) -> object:
    return x


@v14.upgrade
def unchanged(b: Builder, x: Value, /) -> Value:
    return b.Identity(x)


@v14.downgrade
def tensors_only(b: Builder, x: Value, /) -> Value:
    if x.type is not None and not isinstance(x.type, TensorType):
        raise Unconvertible(f"Identity-13 admits tensors alone, not {x.type}")
    return b.Identity(x)


@identity.examples
def examples() -> Iterator[Example]:
    x = np.array([[np.nan, -0.0, 1.5]], np.float32)
    for opset in (1, 13, 14, 16, 19, 21, 23, 24, 25):
        yield Example(opset, x, expect=[x])
        yield Example(opset, np.array("text", object), expect=[np.array("text", object)])
    yield Example(14, [x, -x], expect=[[x, -x]])
    yield Example(21, np.array([-8, 7], ml_dtypes.int4), expect=[np.array([-8, 7], ml_dtypes.int4)])
