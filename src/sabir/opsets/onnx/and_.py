"""And: logical conjunction, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.opsets.families import broadcasting, logic
from sabir.opsets.typing import Array
from sabir.schema import BOOL, Attribute, Constraint, Example, Input, Operator, Output

conjunction = Operator("And", summary="Whether both elements are true.")

T = Constraint("T", BOOL)
T1 = Constraint("T1", BOOL)

v1 = conjunction.first(
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

v1.infer(broadcasting.one_way(BOOLEAN))
v1.evaluate(broadcasting.evaluated_one_way(np.logical_and))
v7.infer(logic.known_both)
v7.upgrade(broadcasting.upgraded("And"))
v7.downgrade(broadcasting.downgraded("And", commutes=True))


@v7.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return np.logical_and(a, b)


@conjunction.examples
def examples() -> Iterator[Example]:
    a, b = [[True, True], [False, False]], np.array([True, False])
    rows, columns = [[True, False], [False, False]], [[True, True], [False, False]]
    yield Example(1, a, [[True, False], [True, False]], expect=[rows])
    yield Example(1, a, b, broadcast=1, expect=[rows])
    yield Example(1, a, b, broadcast=1, axis=0, expect=[columns])
    yield Example(7, a, b, expect=[rows])
    yield Example(7, b[:, None], a, expect=[columns])
    yield Example(7, 1, 0, expect=[0])
    yield Example(7, np.zeros((0, 2), bool), b, expect=[np.zeros((0, 2), bool)])
