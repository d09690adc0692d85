"""StringConcat: strings joined, elementwise."""

import math
from collections.abc import Iterator

import numpy as np

from sabir.base import check_elements
from sabir.opsets.families.numbers import binary
from sabir.opsets.families.numbers.broadcasting import merged
from sabir.opsets.typing import Array
from sabir.schema import STRING, Constraint, Example, Operator

string_concat = Operator(
    "StringConcat", summary="Each string of `X` followed by that of `Y`, broadcast as in numpy."
)

T = Constraint("T", STRING)

v20 = string_concat.first(
    20,
    inputs=binary.inputs(T, "The first parts.", "The second parts.", names="XY", differentiable=False),
    outputs=binary.outputs(T, "Z", differentiable=False),
)

v20.infer(merged)
v20.absent("lower", "kernels compute numbers, no texts")
v20.absent("downgrade", "no older operator joins text")


@v20.evaluate
def evaluate(x: Array, y: Array, /) -> Array:
    shape = np.broadcast_shapes(x.shape, y.shape)
    check_elements(_characters(x, shape) + _characters(y, shape), what="the strings", width=1)
    z: Array = np.empty(shape, object)
    np.add(x, y, out=z)
    return z


def _characters(x: Array, shape: tuple[int, ...]) -> int:
    """Return the number of characters of `x` when it is broadcast to a shape."""
    return sum(map(len, x.ravel().tolist())) * (math.prod(shape) // max(1, x.size))


@string_concat.examples
def examples() -> Iterator[Example]:
    x, y = ["abc", "", "€"], [["."], [""]]
    yield Example(20, x, x[::-1], expect=[["abc€", "", "€abc"]])
    yield Example(20, x, y, expect=[[["abc.", ".", "€."], ["abc", "", "€"]]])
    yield Example(20, "cat", "s", expect=["cats"])
    yield Example(20, x[:0], "s", expect=[x[:0]])
