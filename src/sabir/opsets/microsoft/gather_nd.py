"""GatherND: the parts of a tensor at tuples of indices."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.indexing import tuples
from sabir.opsets.families.indexing.indexing import INDEX_TYPES
from sabir.opsets.typing import Array
from sabir.schema import CLASSIC, Constraint, Example, Input, Operator, Output

gather_nd = Operator(
    "GatherND",
    domain="com.microsoft",
    summary="The part of `data` at each tuple, a last row of `indices`: at i, `data[*indices[i]]`.",
    body_opset=18,
)

T = Constraint("T", CLASSIC)
Tind = Constraint("Tind", INDEX_TYPES)

v1 = gather_nd.first(
    1,
    inputs=[
        Input("data", T, "A tensor of rank 1 or more.", differentiable=True),
        Input("indices", Tind, "Tuples along the last dimension; -1 is the last.", differentiable=False),
    ],
    outputs=[
        Output("output", T, "`indices.shape[:-1]`, then the axes that no tuple indexes.", differentiable=True)
    ],
)


@v1.infer
def infer(data: TensorType, indices: TensorType, /) -> TensorType:
    return tuples.infer(data, indices)


@v1.evaluate
def evaluate(data: Array, indices: Array, /) -> Array:
    return tuples.evaluate(data, indices)


@v1.body
def body(b: Builder, data: Value, indices: Value, /) -> Value:
    return b.GatherND(data, typed(b, indices, INT64))


@gather_nd.examples
def examples() -> Iterator[Example]:
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    for kind in (np.int32, np.int64):
        yield Example(1, x, np.array([[0, 1], [1, 0]], kind), expect=[[[2, 3], [4, 5]]])
        yield Example(1, x, np.array([[[-1, 0, 1]]], kind), expect=[[[5]]])
        yield Example(1, x, np.array([1], kind), expect=[x[1]])
    yield Example(1, ["a", "b"], np.array([1], np.int32), expect=["b"])
    yield Example(1, x, np.zeros((0, 2), np.int64), expect=[np.zeros((0, 2), np.float32)])
