"""Erf: the error function, elementwise."""

import math
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.elements import DOUBLE
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import error_function
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    NUMBERS,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

erf = Operator(
    "Erf",
    summary="The error function of each element: `2/sqrt(pi)` times the integral of `exp(-t*t)` from 0.",
)

T = Constraint("T", NUMBERS)

v9 = erf.first(
    9,
    inputs=[Input("input", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape; every value between -1 and 1.", differentiable=True)],
)
FLOATING = Constraint("T", FLOATS, BFLOAT16)
v13 = v9.evolve(
    13,
    "Admits bfloat16, and no longer integers (which a later release of the standard removed).",
    inputs=[Input("input", FLOATING, "A tensor of any shape.", differentiable=True)],
    outputs=[
        Output("output", FLOATING, "The input's shape; every value between -1 and 1.", differentiable=True)
    ],
)

v9.infer(same_as_first)
v9.absent("downgrade", "no older operator computes the error function, and approximations have other digits")


@v9.evaluate
def evaluate(x: Array, /) -> Array:
    """Compute integers in float64, and truncate the result toward zero."""
    wide = x.astype(np.float64) if x.dtype.kind in "iu" else x
    return error_function.erf(wide).astype(x.dtype, copy=False)


@v9.lower
def lower(x: Expression, /) -> Expression:
    return loops.cast(loops.apply("erf", kernels.as_floats(x)), x.element)


@v13.upgrade
def integers_as_double(b: Builder, x: Value, /) -> Value:
    if not isinstance(x.type, TensorType) or not x.type.element.number:
        raise Unconvertible("the element type is unknown, and Erf:13 takes no integers")
    if not x.type.element.is_integer:
        return b.Erf(x)
    return b.Cast(b.Erf(b.Cast(x, to=DOUBLE.number)), to=x.type.element.number)


@v13.downgrade
def without_bfloat16(b: Builder, x: Value, /) -> Value:
    if not isinstance(x.type, TensorType) or x.type.signature not in v9.inputs[0].allowed:
        raise Unconvertible(f"Erf:9 does not admit {x.type or 'an input of unknown type'}")
    return b.Erf(x)


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Mul(g.dy, g.Mul(g.Exp(g.Neg(g.Mul(x, x))), 2 / math.sqrt(math.pi)))


@erf.examples
def examples() -> Iterator[Example]:
    # from a table of 20 digits
    x = np.array([[0.0, 0.5, 1.0, -2.0], [3.0, 1e-10, np.inf, np.nan]])
    y = np.array([
        [0.0, 0.52049987781304653768, 0.84270079294971486934, -0.99532226501895273416],
        [0.99997790950300141456, 1.1283791670955125739e-10, 1.0, np.nan],
    ])
    for opset in (9, 13):
        yield Example(opset, x, expect=[y], tolerance=1e-15)
        yield Example(opset, x.astype(np.float32), expect=[y.astype(np.float32)], tolerance=1e-7)
        yield Example(opset, x.astype(np.float16), expect=[y.astype(np.float16)], tolerance=1e-3)
        yield Example(opset, -1.0, expect=[-0.8427007929])
        yield Example(opset, np.zeros((2, 0), np.float32), expect=[np.zeros((2, 0), np.float32)])
    # erf(6) = 1 - 2e-17 is 1 in double, erf(5) is not
    yield Example(9, np.array([0, 5, 6, -7], np.int32), expect=[[0, 0, 1, -1]])
    yield Example(13, x.astype(ml_dtypes.bfloat16), expect=[y.astype(ml_dtypes.bfloat16)], tolerance=1e-2)
