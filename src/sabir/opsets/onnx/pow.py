"""Pow: powers, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Dim, TensorType, Value, product
from sabir.opsets.families import arithmetic, broadcasting, powers
from sabir.opsets.families.shapes import broadcast
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

power = Operator("Pow", summary="`X` raised to the power `Y`, elementwise, in the element type of `X`.")

T = Constraint("T", FLOATS)

v1 = power.first(
    1,
    inputs=[
        Input("X", T, "The base.", differentiable=True),
        Input("Y", T, "The exponent.", differentiable=True),
    ],
    outputs=[Output("Z", T, "The shape that both inputs broadcast to.", differentiable=True)],
    attributes=[
        Attribute(
            "axis", "int", "Where the dimensions of `Y` begin among those of `X`; at the end by default."
        ),
        Attribute("broadcast", "int", "1: `Y` is repeated to the shape of `X`.", default=0),
    ],
)
v7 = v1.evolve(
    7,
    "Either input is broadcast, as numpy does it; the attributes that steered it are gone.",
    drop=["axis", "broadcast"],
)
T1 = Constraint("T1", NUMBERS)
v12 = v7.evolve(
    12,
    "The exponent may have a type of its own; admits 32- and 64-bit integers.",
    inputs=[
        Input("X", T, "The base.", differentiable=True),
        Input("Y", T1, "The exponent.", differentiable=True),
    ],
    widen={"T": tensors("int32", "int64")},
)
v13 = v12.widen(13, T=BFLOAT16)
v15 = v13.widen(15, T1=BFLOAT16)

MOST_FACTORS = 4  # of a power of symbols

v1.infer(broadcasting.one_way())
v1.evaluate(broadcasting.evaluated_one_way(powers.raised))
v7.upgrade(broadcasting.upgraded("Pow"))
v7.downgrade(broadcasting.downgraded("Pow"))


@v7.infer
def infer(x: TensorType, y: TensorType, /) -> TensorType:
    if not x.element.number:
        return TensorType(x.element, broadcast(x.shape, y.shape))
    return arithmetic.limited(_of_sizes, x, y)


def _of_sizes(x: Dim, y: Dim) -> Dim:
    return product([x] * y) if isinstance(y, int) and 0 <= y <= MOST_FACTORS else None


@v7.evaluate
def evaluate(x: Array, y: Array, /) -> Array:
    return powers.raised(x, y)


@v12.upgrade
def types_may_differ(b: Builder, x: Value, y: Value, /) -> Value:
    return b.Pow(x, y)


@v12.downgrade
def types_must_agree(b: Builder, x: Value, y: Value, /) -> Value:
    if not isinstance(x.type, TensorType) or not isinstance(y.type, TensorType):
        raise Unconvertible("the element types are unknown, and Pow-7 takes one for both inputs")
    if x.type.signature not in FLOATS:
        raise Unconvertible(f"Pow-7 does not admit {x.type.signature} as a base")
    if x.type.element == y.type.element:
        return b.Pow(x, y)
    if y.type.element.is_float and y.type.element.bits > x.type.element.bits:
        raise Unconvertible(f"the exponent is {y.type.element}, which Pow-7 would round to {x.type.element}")
    return b.Pow(x, b.Cast(y, to=x.type.element.number))


@power.examples
def examples() -> Iterator[Example]:
    x, row = [[1.0, 2, 3], [4, 5, 6]], [0.0, 1, 2]
    by_row, by_column = (np.array(t, np.float32) for t in ([[1, 2, 9], [1, 5, 36]], [[1, 4, 9], [1, 1, 1]]))
    yield Example(1, x, x, expect=[[[1, 4, 27], [256, 3125, 46656]]])
    yield Example(1, x, row, broadcast=1, expect=[by_row])
    yield Example(1, x, [2, 0], broadcast=1, axis=0, expect=[by_column])
    for opset in (7, 12, 13, 15):
        yield Example(opset, x, row, expect=[by_row])
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
