"""Equal: whether two elements are equal."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.ir import Expr, Item, TensorType, known_equal
from sabir.opsets.families import arithmetic, broadcasting
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    BOOL,
    NUMBERS,
    STRING,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    tensors,
)

equal = Operator("Equal", summary="Whether `A` equals `B`, elementwise; NaN equals nothing.")

T = Constraint("T", BOOL, tensors("int32", "int64"))
T1 = Constraint("T1", BOOL)

v1 = equal.first(
    1,
    inputs=[
        Input("A", T, "One operand.", differentiable=False),
        Input("B", T, "The other operand.", differentiable=False),
    ],
    outputs=[Output("C", T1, "The shape that both inputs broadcast to.", differentiable=False)],
    attributes=[
        Attribute(
            "axis", "int", "Where the dimensions of `B` begin among those of `A`; at the end by default."
        ),
        Attribute("broadcast", "int", "1: `B` is repeated to the shape of `A`.", default=0),
    ],
)
v7 = v1.evolve(
    7,
    "Either input is broadcast, as numpy does it; the attributes that steered it are gone.",
    drop=["axis", "broadcast"],
)
v11 = v7.widen(11, T=NUMBERS)
v13 = v11.widen(13, T=BFLOAT16)
v19 = v13.widen(19, T=STRING)

v1.infer(broadcasting.one_way(BOOLEAN))
v7.upgrade(broadcasting.upgraded("Equal"))
v7.downgrade(broadcasting.downgraded("Equal", commutes=True))


@v7.infer
def infer(a: TensorType, b: TensorType, /) -> TensorType:
    return broadcasting.computed(_equal, a, b, element=BOOLEAN)


def _equal(a: Item, b: Item) -> Item:
    if isinstance(a, Expr) or isinstance(b, Expr):
        return known_equal(arithmetic.as_dim(a), arithmetic.as_dim(b))
    return a == b


@v7.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return np.equal(a, b).astype(np.bool_, copy=False)  # numpy compares text to objects


v1.evaluate(broadcasting.evaluated_one_way(evaluate))


@equal.examples
def examples() -> Iterator[Example]:
    a, row, column = [[1, 2], [3, 4]], [1, 4], np.array([2, 4])
    by_row, by_column = [[True, False], [False, True]], [[False, True], [False, True]]
    yield Example(1, a, a, expect=[np.ones((2, 2), bool)])
    yield Example(1, a, row, broadcast=1, expect=[by_row])
    yield Example(1, a, column, broadcast=1, axis=0, expect=[by_column])
    for opset in (7, 11, 13, 19):
        yield Example(opset, a, row, expect=[by_row])
        yield Example(opset, column[:, None], a, expect=[by_column])
        yield Example(opset, [True, False], 0, expect=[[False, True]])
    floats = [0.0, np.nan, np.inf]
    yield Example(11, floats, [-0.0, np.nan, np.inf], expect=[[True, False, True]])
    texts = ["one", "two", ""]
    yield Example(19, texts, "two", expect=[[False, True, False]])
    yield Example(19, np.zeros((0, 1), object), texts, expect=[np.zeros((0, 3), bool)])
