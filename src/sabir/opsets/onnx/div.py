"""Div: the quotient of two tensors, elementwise."""

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

div = Operator(
    "Div", summary="The quotient of two tensors, elementwise: `A / B`, of integers cut toward zero."
)

T = Constraint("T", FLOATS)

v1 = div.first(
    1,
    inputs=[
        Input("A", T, "The dividend.", differentiable=True),
        Input("B", T, "The divisor; an integer divided by 0 gives 0.", differentiable=True),
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
v7.infer(arithmetic.known_quotient)


@v7.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return arithmetic.divide(a, b)


v1.evaluate(broadcasting.evaluated_one_way(evaluate))
v7.upgrade(broadcasting.upgraded("Div"))
v7.downgrade(broadcasting.downgraded("Div"))


@div.examples
def examples() -> Iterator[Example]:
    a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    row, column = [1, 2, 4], np.array([2, 4], np.float32)
    by_row, by_column = ([[1, 1, 0.75], [4, 2.5, 1.5]], [[0.5, 1, 1.5], [1, 1.25, 1.5]])
    for opset in (1, 6):
        yield Example(opset, a, a, expect=[[[1, 1, 1], [1, 1, 1]]])
        yield Example(opset, a, row, broadcast=1, expect=[by_row])
        yield Example(opset, a, column, broadcast=1, axis=0, expect=[by_column])
        yield Example(opset, a, [[2]], broadcast=1, expect=[[[0.5, 1, 1.5], [2, 2.5, 3]]])
    yield Example(6, [[7, 8]], [2], broadcast=1, expect=[[[3, 4]]])
    for opset in (7, 13, 14):
        yield Example(opset, a, row, expect=[by_row])
        yield Example(opset, a, column[:, None], expect=[by_column])
        yield Example(opset, np.zeros((0, 3), np.float16), 1, expect=[np.zeros((0, 3), np.float16)])
    yield Example(7, [12], a, expect=[[[12, 6, 4], [3, 2.4, 2]]])
    signs = [7, -7, 7, -7, 6], [2, 2, -2, -2, -3]
    for opset in (7, 13, 14):
        yield Example(opset, *signs, expect=[[3, -3, -3, 3, -2]])
        yield Example(opset, np.array([5, -5, 0], np.int32), 0, expect=[np.zeros(3, np.int32)])
    yield Example(14, np.array([-128, 127], np.int8), -1, expect=[[-128, -127]])
    yield Example(14, np.array([7, 9], np.uint8), [0, 2], expect=[[0, 4]])
    yield Example(7, np.array([1, 0, -1]) / 1.0, 0, expect=[[np.inf, np.nan, -np.inf]])
