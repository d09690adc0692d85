"""Sub: the difference of two tensors, elementwise."""

from collections.abc import Iterator

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

sub = Operator("Sub", summary="The difference of two tensors, elementwise: `A - B`.")

T = Constraint("T", FLOATS)

v1 = sub.first(
    1,
    inputs=[
        Input("A", T, "What is subtracted from.", differentiable=True),
        Input("B", T, "What is subtracted.", differentiable=True),
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
v7.infer(arithmetic.known_difference)


@v7.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return np.subtract(a, b)


v1.evaluate(broadcasting.evaluated_one_way(evaluate))
v7.upgrade(broadcasting.upgraded("Sub"))
v7.downgrade(broadcasting.downgraded("Sub"))


@sub.examples
def examples() -> Iterator[Example]:
    a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    row, column = [1, 2, 4], np.array([2, 4], np.float32)
    by_row, by_column = ([[0, 0, -1], [3, 3, 2]], [[-1, 0, 1], [0, 1, 2]])
    for opset in (1, 6):
        yield Example(opset, a, a, expect=[[[0, 0, 0], [0, 0, 0]]])
        yield Example(opset, a, row, broadcast=1, expect=[by_row])
        yield Example(opset, a, column, broadcast=1, axis=0, expect=[by_column])
        yield Example(opset, a, [[2]], broadcast=1, expect=[[[-1, 0, 1], [2, 3, 4]]])
    yield Example(6, [[7, 8]], [2], broadcast=1, expect=[[[5, 6]]])
    for opset in (7, 13, 14):
        yield Example(opset, a, row, expect=[by_row])
        yield Example(opset, a, column[:, None], expect=[by_column])
        yield Example(opset, np.zeros((0, 3), np.float16), 1, expect=[np.zeros((0, 3), np.float16)])
    yield Example(7, [1], a, expect=[1 - a])
    yield Example(14, np.array([1, 7], np.uint8), [2, 7], expect=[[255, 0]])
    yield Example(7, -(2**63), 1, expect=[2**63 - 1])
    yield Example(7, np.float64(np.inf), np.inf, expect=[np.nan])
