"""Transpose: a tensor with its dimensions in another order."""

from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.shapes import contents
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    SMALL_TYPES_AND_FLOAT8,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
)

transpose = Operator("Transpose", summary="`data` with its dimensions in the order of `perm`, or reversed.")

T = Constraint("T", CLASSIC)

v1 = transpose.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("transposed", T, "Dimension `perm[i]` of the input in place i.", differentiable=True)],
    attributes=[Attribute("perm", "ints", "Every axis of the input, once; reversed when absent.")],
)
v13 = v1.widen(13, T=BFLOAT16)
v25 = v13.widen_stepwise(SMALL_TYPES_AND_FLOAT8, "T")


@v1.infer
def infer(data: TensorType, /, *, perm: Sequence[int] | None) -> TensorType:
    rank = data.rank if perm is None else len(perm)
    if data.shape is None:
        return TensorType(data.element, None if rank is None else (None,) * rank)
    order = _order(perm, len(data.shape))
    kind = TensorType(data.element, tuple(data.shape[i] for i in order))
    return contents.moved(kind, lambda known: known.transpose(order), data)


@v1.lower
def lower(data: Expression, /, *, perm: Sequence[int] | None) -> Expression:
    return loops.permute(data, perm or range(data.rank)[::-1])


@v1.evaluate
def evaluate(data: Array, /, *, perm: Sequence[int] | None) -> Array:
    return data.transpose(_order(perm, data.ndim))


def _order(perm: Sequence[int] | None, rank: int) -> Sequence[int]:
    if perm is None:
        return range(rank)[::-1]
    if sorted(perm) != [*range(rank)]:
        raise InferenceError(f"`perm` {list(perm)} must name each axis of a tensor of rank {rank} once")
    return perm


@v13.gradient
def gradient(g: Gradient, data: Value, /, *, perm: Sequence[int] | None) -> Value:
    return g.Transpose(g.dy, perm=perm and [perm.index(axis) for axis in range(len(perm))])


@transpose.examples
def examples() -> Iterator[Example]:
    x = np.array([[[1, 2, 3], [4, 5, 6]]], np.float32)
    turned = [[[1], [2], [3]], [[4], [5], [6]]]
    for opset in (1, 13, 21, 23, 24, 25):
        yield Example(opset, x, perm=[1, 2, 0], expect=[turned])
        yield Example(opset, x[0], expect=[[[1, 4], [2, 5], [3, 6]]])
    yield Example(1, "a", expect=["a"])
    yield Example(13, 7, perm=[], expect=[7])
    yield Example(13, np.zeros((0, 2), np.int16), perm=[1, 0], expect=[np.zeros((2, 0), np.int16)])
    nibbles = np.array([[-8, 7]], ml_dtypes.int4)
    yield Example(21, nibbles, expect=[[[-8], [7]]])
