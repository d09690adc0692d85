"""Copies between the memories of devices, which do not change a value."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from sabir.schema import (
    BFLOAT16,
    BOOL,
    COMPLEX,
    FLOAT8,
    NUMBERS,
    Constraint,
    Example,
    Input,
    Output,
    sequences,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Builder, Type, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Gradient
    from sabir.schema import Operator, Version

BODY_OPSET = 19  # the first Identity of the standard that admits float8

_TENSORS = NUMBERS | BOOL | COMPLEX | BFLOAT16


def declare(operator: Operator) -> Version:
    """Declare the only version of a copy, with its behaviours."""
    kinds = Constraint("T", _TENSORS, FLOAT8, sequences(_TENSORS))
    v1 = operator.first(
        1,
        inputs=[Input("X", kinds, "A tensor, or a sequence of tensors.", differentiable=True)],
        outputs=[Output("Y", kinds, "The same value.", differentiable=True)],
        unpublished=True,
    )
    v1.infer(infer)
    v1.evaluate(evaluate)
    v1.lower(lower)
    v1.body(body)
    v1.gradient(gradient)
    return v1


def infer(x: Type, /) -> Type:
    return dataclasses.replace(x, note=None)  # a file's note on a value does not apply to its copy


def evaluate(x: object, /) -> object:
    return x


def lower(x: Expression, /) -> Expression:
    return x


def body(b: Builder, x: Value, /) -> Value:
    return b.Identity(x)


def gradient(g: Gradient, x: Value, /) -> Value:
    del x
    return g.dy


def examples() -> Iterator[Example]:
    """Yield a call for each element type, and one for a sequence."""
    for opset in (7, 21):
        for kind in (*map(np.dtype, "efdbhilqBHIQ?FD"), np.dtype(ml_dtypes.bfloat16)):
            x = np.array([[0, 1, 3]]).astype(kind)
            yield Example(opset, x, expect=[x])
    for kind in (
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
    ):
        x = np.array([0, 1.5], kind)
        yield Example(21, x, expect=[x])
    special = np.array([np.nan, -0.0, np.inf], np.float32)
    yield Example(21, special, expect=[special])
    yield Example(21, [special, special[:0]], expect=[[special, special[:0]]])
