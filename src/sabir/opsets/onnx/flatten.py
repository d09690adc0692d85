"""Flatten: a tensor as a matrix."""

import math
from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, TensorType, Value, product
from sabir.loops import Expression, Lowering
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import from_front
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOATS,
    SMALL_TYPES_AND_FLOAT8,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
)

flatten = Operator(
    "Flatten", summary="A matrix whose rows run over the dimensions before `axis`, its columns over the rest."
)

T = Constraint("T", FLOATS)

v1 = flatten.first(
    1,
    inputs=[Input("input", T, "A tensor whose rank is at least `axis`.", differentiable=True)],
    outputs=[Output("output", T, "The same elements, as a matrix.", differentiable=True)],
    attributes=[
        Attribute(
            "axis", "int", "The first dimension of the columns, from -rank up to the rank itself.", default=1
        )
    ],
)
v9 = v1.widen(9, T=CLASSIC)
v11 = v9.restate(11, "A negative `axis` counts from the back.")
v13 = v11.widen(13, T=BFLOAT16)
v25 = v13.widen_stepwise(SMALL_TYPES_AND_FLOAT8, "T")


@v1.infer
def infer(x: TensorType, /, *, axis: int) -> TensorType:
    if x.shape is None:
        return TensorType(x.element, (1, None) if axis == 0 else (None, None))
    split = _split_point(axis, len(x.shape))
    matrix = TensorType(x.element, (product(x.shape[:split]), product(x.shape[split:])))
    return contents.moved(matrix, lambda known: known, x)


@v1.evaluate
def evaluate(x: Array, /, *, axis: int) -> Array:
    split = _split_point(axis, x.ndim)
    return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))


@v1.lower
def lower(x: Expression, /, *, call: Lowering) -> Expression:
    return loops.reshape(x, call.shape())


def _split_point(axis: int, rank: int) -> int:
    return rank if axis == rank else axis_in(axis, rank)


@v11.downgrade
def axis_from_front(b: Builder, x: Value, /, *, axis: int) -> Value:
    return b.Flatten(x, axis=from_front([axis], x)[0])


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Reshape(g.dy, g.sizes(x), allowzero=1)


@flatten.examples
def examples() -> Iterator[Example]:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for opset in (1, 9, 11, 13, 21, 23, 24, 25):
        yield Example(opset, x, expect=[x.reshape(2, 12)])
    for axis, rows in ((0, 1), (2, 6), (3, 24), (-1, 6), (-3, 1)):
        yield Example(11, x, axis=axis, expect=[x.reshape(rows, 24 // rows)])
    yield Example(9, 7, axis=0, expect=[[[7]]])
    yield Example(9, ["a", "b"], expect=[[["a"], ["b"]]])
    yield Example(13, np.zeros((2, 0, 3), np.float32), axis=2, expect=[np.zeros((0, 3), np.float32)])
