"""StringConcat: strings joined, elementwise."""

import math
from collections.abc import Iterator

import numpy as np

from sabir.base import check_elements
from sabir.opsets.families.broadcasting import merged
from sabir.opsets.typing import Array
from sabir.schema import STRING, Constraint, Example, Input, Operator, Output

string_concat = Operator(
    "StringConcat", summary="Each string of `X` followed by the one of `Y`, broadcast as numpy does."
)

T = Constraint("T", STRING)

v20 = string_concat.first(
    20,
    inputs=[
        Input("X", T, "What comes first.", differentiable=False),
        Input("Y", T, "What comes behind.", differentiable=False),
    ],
    outputs=[Output("Z", T, "The shape to which X and Y broadcast.", differentiable=False)],
)

v20.infer(merged)


@v20.evaluate
def evaluate(x: Array, y: Array, /) -> Array:
    shape = np.broadcast_shapes(x.shape, y.shape)
    check_elements(_letters(x, shape) + _letters(y, shape), what="the texts", width=1)
    z: Array = np.empty(shape, object)
    np.add(x, y, out=z)
    return z


def _letters(x: Array, shape: tuple[int, ...]) -> int:
    """Return how many letters `x` has, repeated to a shape."""
    return sum(map(len, x.ravel().tolist())) * (math.prod(shape) // max(1, x.size))


@string_concat.examples
def examples() -> Iterator[Example]:
    x, y = ["abc", "", "€"], [["."], [""]]
    yield Example(20, x, x[::-1], expect=[["abc€", "", "€abc"]])
    yield Example(20, x, y, expect=[[["abc.", ".", "€."], ["abc", "", "€"]]])
    yield Example(20, "cat", "s", expect=["cats"])
    yield Example(20, x[:0], "s", expect=[x[:0]])
