"""Pow: powers, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Dim, TensorType, Value, product
from sabir.opsets.families.numbers import arithmetic, binary, broadcasting, powers
from sabir.opsets.families.shapes.shapes import broadcast
from sabir.opsets.typing import Gradient
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    NUMBERS,
    Constraint,
    Example,
    Input,
    Operator,
    Unconvertible,
    tensors,
)

power = Operator("Pow", summary="`X` raised to the power `Y`, elementwise, in the element type of `X`.")

T = Constraint("T", FLOATS)

v1 = power.first(
    1,
    inputs=binary.inputs(T, "The base.", "The exponent.", names="XY", differentiable=True),
    outputs=binary.outputs(T, "Z", differentiable=True),
    attributes=binary.one_way("X", "Y"),
)
v7 = v1.evolve(7, "Broadcasts both inputs, as numpy does.", drop=["axis", "broadcast"])
T1 = Constraint("T1", NUMBERS)
v12 = v7.evolve(
    12,
    "The exponent may differ in type; admits 32- and 64-bit signed integers.",
    inputs=[v7.inputs[0], Input("Y", T1, "The exponent.", differentiable=True)],
    widen={"T": tensors("int32", "int64")},
)
v13 = v12.widen(13, T=BFLOAT16)
v15 = v13.widen(15, T1=BFLOAT16)

MOST_FACTORS = 4  # of a power of symbolic sizes

v7.evaluate(powers.raised)
v7.lower(powers.raised_expression)
broadcasting.one_way_before(v7)


@v7.infer
def infer(x: TensorType, y: TensorType, /) -> TensorType:
    if not x.element.number:
        return TensorType(x.element, broadcast(x.shape, y.shape))
    return arithmetic.limited(_of_sizes, x, y)


def _of_sizes(x: Dim, y: Dim) -> Dim:
    return product([x] * y) if isinstance(y, int) and 0 <= y <= MOST_FACTORS else None


@v12.upgrade
def unchanged(b: Builder, x: Value, y: Value, /) -> Value:
    return b.Pow(x, y)


@v12.downgrade
def downgrade(b: Builder, x: Value, y: Value, /) -> Value:
    if not isinstance(x.type, TensorType) or not isinstance(y.type, TensorType):
        raise Unconvertible("the element types are unknown, and Pow:7 takes one for both inputs")
    if x.type.signature not in FLOATS:
        raise Unconvertible(f"Pow:7 does not admit {x.type.signature} as a base")
    if x.type.element == y.type.element:
        return b.Pow(x, y)
    if y.type.element.is_float and y.type.element.bits > x.type.element.bits:
        raise Unconvertible(f"the exponent is {y.type.element}, which Pow:7 would round to {x.type.element}")
    return b.Pow(x, b.Cast(y, to=x.type.element.number))


@v15.gradient
def gradient(g: Gradient, x: Value, y: Value, /) -> tuple[Value, Value]:
    """Where `x` is 0, powers of 0 and exponents of 0 or above have the gradient 0, as in PyTorch."""
    exponent = g.CastLike(y, x)
    zero = g.Equal(x, 0)
    base = g.Where(g.And(zero, g.Equal(exponent, 0)), 1, x)
    dx = g.Mul(g.dy, g.Mul(exponent, g.Pow(base, g.Sub(exponent, 1))))
    base = g.Where(g.And(zero, g.GreaterOrEqual(exponent, 0)), 1, x)
    dy = g.Mul(g.dy, g.Mul(g.y(), g.Log(base)))
    return g.fit(dx, x), g.CastLike(g.fit(dy, y), y)


@power.examples
def examples() -> Iterator[Example]:
    x, row = np.array([[1, 2, 3], [4, 5, 6]], np.float32), np.array([0, 1, 2], np.float32)
    column = np.array([[2], [0]], np.float32)
    yield from binary.examples_of("pow", x, row, column, one_way=(1,), both_ways=(7, 12, 13, 15))
    yield Example(1, x, x, expect=[[[1, 4, 27], [256, 3125, 46656]]])
    for opset in (7, 12, 13, 15):
        yield Example(opset, row, [[2.0], [3.0]], expect=[[[0, 1, 4], [0, 1, 8]]])
        roots = np.array([0.25, -0.0, -np.inf, -1, np.nan])
        yield Example(opset, roots, np.float64(0.5), expect=[[0.5, 0.0, np.inf, np.nan, np.nan]])
        yield Example(opset, np.float16(3), np.float16(2), expect=[9])
        yield Example(opset, np.zeros((0, 2), np.float32), 2.0, expect=[np.zeros((0, 2), np.float32)])
        yield Example(opset, roots, np.zeros((1, 1)), expect=[np.ones((1, 5))])
    for opset in (12, 13, 15):
        exact = [3**39, -(2**63), 0]
        yield Example(opset, [3, -2, 2], np.array([39, 63, 64], np.uint8), expect=[exact])
        whole = np.array([2, -1, -1, 1], np.int32), [-1, -3, -4, -9]
        yield Example(opset, *whole, expect=[[0, -1, 1, 1]])
        yield Example(opset, np.array([4, 6], np.int32), np.array([0.5, 1.5]), expect=[[2, 14]])
        yield Example(opset, x, 3, expect=[[[1, 8, 27], [64, 125, 216]]])
        yield Example(opset, np.array([2.0, 4.0]), np.array([3, -1], np.int8), expect=[[8.0, 0.25]])
    halves = np.array([3, -2], ml_dtypes.bfloat16)
    yield Example(13, halves, np.int32(3), expect=[[27, -8]])
    yield Example(15, [3.0, 2], halves, expect=[[27, 0.25]])
