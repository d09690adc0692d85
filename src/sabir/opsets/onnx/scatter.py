"""Scatter: ScatterElements, under its first name."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.scattering import NONE, elements, infer_elements
from sabir.opsets.typing import Array
from sabir.schema import CLASSIC, Attribute, Constraint, Example, Input, Operator, Output, tensors

scatter = Operator(
    "Scatter",
    summary="`data` with one of `updates` for each index: at i, j to `[i, indices[i, j]]` where `axis` is 1.",
)

T = Constraint("T", CLASSIC)
Tind = Constraint("Tind", tensors("int32", "int64"))

v9 = scatter.first(
    9,
    inputs=[
        Input("data", T, "A tensor of rank 1 or more.", differentiable=True),
        Input(
            "indices", Tind, "Places along `axis`, -1 the last; of the rank of `data`.", differentiable=False
        ),
        Input("updates", T, "One element for each index.", differentiable=True),
    ],
    outputs=[Output("output", T, "A copy of `data` with the updates in it.", differentiable=True)],
    attributes=[Attribute("axis", "int", "The dimension to index, from the back if negative.", default=0)],
)
v11 = v9.retire(11, "Gives way to ScatterElements, which is the same by a better name.")

v9.infer(infer_elements)


@v9.evaluate
def evaluate(data: Array, indices: Array, updates: Array, /, *, axis: int) -> Array:
    return elements(data, indices, updates, axis, NONE)


@v11.upgrade
def take_the_new_name(b: Builder, data: Value, indices: Value, updates: Value, /, *, axis: int) -> Value:
    return b.ScatterElements(data, indices, updates, axis=axis)


@v11.downgrade
def same_call(b: Builder, data: Value, indices: Value, updates: Value, /, *, axis: int) -> Value:
    return b.Scatter(data, indices, updates, axis=axis)


@scatter.examples
def examples() -> Iterator[Example]:
    f = np.float32
    places = [[1, 0, 2], [0, 2, 1]]
    updates = [[1, 1.5, 2], [3, 3.5, 4]]
    rows = [[3, 1.5, 0], [1, 0, 4], [0, 3.5, 2]]
    for opset in (9, 11):
        yield Example(opset, np.zeros((3, 3), f), places, updates, expect=[rows])
        yield Example(
            opset,
            np.array([[1, 2, 3, 4, 5]], f),
            np.array([[1, -2]], np.int32),
            [[6, 7]],
            axis=1,
            expect=[[[1, 6, 3, 7, 5]]],
        )
