"""Transpose: a tensor with its dimensions in another order."""

from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families import contents
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT4,
    FLOAT8,
    FLOAT8E8M0,
    INT2,
    INT4,
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
v21 = v13.widen(21, T=FLOAT8 | INT4)
v23 = v21.widen(23, T=FLOAT4)
v24 = v23.widen(24, T=FLOAT8E8M0)
v25 = v24.widen(25, T=INT2)


@v1.infer
def infer(data: TensorType, /, *, perm: Sequence[int] | None) -> TensorType:
    rank = data.rank if perm is None else len(perm)
    if data.shape is None:
        return TensorType(data.element, None if rank is None else (None,) * rank)
    order = _order(perm, len(data.shape))
    kind = TensorType(data.element, tuple(data.shape[i] for i in order))
    return contents.moved(kind, lambda held: held.transpose(order), data)


@v1.evaluate
def evaluate(data: Array, /, *, perm: Sequence[int] | None) -> Array:
    return data.transpose(_order(perm, data.ndim))


def _order(perm: Sequence[int] | None, rank: int) -> Sequence[int]:
    if perm is None:
        return range(rank)[::-1]
    if sorted(perm) != [*range(rank)]:
        raise InferenceError(f"`perm` {list(perm)} must name each axis of a tensor of rank {rank} once")
    return perm


@transpose.examples
def examples() -> Iterator[Example]:
    x = np.array([[[1, 2, 3], [4, 5, 6]]], np.float32)
    turned = np.array([[[1], [2], [3]], [[4], [5], [6]]], np.float32)
    for opset in (1, 13, 21, 23, 24, 25):
        yield Example(opset, x, perm=[1, 2, 0], expect=[turned])
        yield Example(opset, x[0], expect=[np.array([[1, 4], [2, 5], [3, 6]], np.float32)])
    yield Example(1, np.array("a", object), expect=[np.array("a", object)])
    yield Example(13, np.array(7), perm=[], expect=[np.array(7)])
    yield Example(13, np.zeros((0, 2), np.int16), perm=[1, 0], expect=[np.zeros((2, 0), np.int16)])
    nibbles = np.array([[-8, 7]], ml_dtypes.int4)
    yield Example(21, nibbles, expect=[np.array([[-8], [7]], ml_dtypes.int4)])
