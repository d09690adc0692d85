"""Add: the sum of two tensors, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.opsets.families import arithmetic, broadcasting
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
    tensors,
)

add = Operator("Add", summary="The sum of two tensors, elementwise: `A + B`.")

T = Constraint("T", FLOATS)

v1 = add.first(
    1,
    inputs=[
        Input("A", T, "One summand.", differentiable=True),
        Input("B", T, "The other summand.", differentiable=True),
    ],
    outputs=[Output("C", T, "The shape that both inputs broadcast to.", differentiable=True)],
    attributes=[
        Attribute(
            "axis", "int", "Where the dimensions of `B` begin among those of `A`; at the end by default."
        ),
        Attribute("consumed_inputs", "ints", legacy=True),
        Attribute("broadcast", "int", "1: `B` is repeated to the shape of `A`.", default=0),
    ],
)
v6 = v1.evolve(
    6,
    "Drops the legacy hint `consumed_inputs`; admits 32- and 64-bit integers.",
    drop=["consumed_inputs"],
    widen={"T": tensors("int32", "int64", "uint32", "uint64")},
)
v7 = v6.evolve(
    7,
    "Either input is broadcast, as numpy does it; the attributes that steered it are gone.",
    drop=["axis", "broadcast"],
)
v13 = v7.widen(13, T=BFLOAT16)
v14 = v13.widen(14, T=NUMBERS)

v1.infer(broadcasting.one_way())
v7.infer(arithmetic.known_sum)


@v7.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return np.add(a, b)


v1.evaluate(broadcasting.evaluated_one_way(evaluate))
v7.upgrade(broadcasting.upgraded("Add"))
v7.downgrade(broadcasting.downgraded("Add", commutes=True))


@add.examples
def examples() -> Iterator[Example]:
    a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    row, column = [1, 2, 4], np.array([2, 4], np.float32)
    by_row, by_column = ([[2, 4, 7], [5, 7, 10]], [[3, 4, 5], [8, 9, 10]])
    for opset in (1, 6):
        yield Example(opset, a, a, expect=[[[2, 4, 6], [8, 10, 12]]])
        yield Example(opset, a, row, broadcast=1, expect=[by_row])
        yield Example(opset, a, column, broadcast=1, axis=0, expect=[by_column])
        yield Example(opset, a, [[2]], broadcast=1, expect=[[[3, 4, 5], [6, 7, 8]]])
    yield Example(6, [[7, 8]], [2], broadcast=1, expect=[[[9, 10]]])
    for opset in (7, 13, 14):
        yield Example(opset, a, row, expect=[by_row])
        yield Example(opset, a, column[:, None], expect=[by_column])
        yield Example(opset, np.zeros((0, 3), np.float16), 1, expect=[np.zeros((0, 3), np.float16)])
    yield Example(7, [1], a, expect=[a + 1])
    yield Example(14, np.array([250, 1], np.uint8), [10, 2], expect=[[4, 3]])
    yield Example(14, np.int8(127), 1, expect=[-128])
    # 256 + 1 lies halfway between two bfloat16 numbers, and goes to the even one
    half = np.array([256, 1], ml_dtypes.bfloat16)
    yield Example(13, half, half[1:], expect=[[256, 2]])
