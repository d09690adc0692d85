"""Scatter: the first name of ScatterElements."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.indexing import scattering_kernels
from sabir.opsets.families.indexing.indexing import AXIS, INDEX_TYPES
from sabir.opsets.families.indexing.scattering import elements, infer_elements
from sabir.schema import CLASSIC, Constraint, Example, Input, Operator, Output

scatter = Operator(
    "Scatter",
    summary="`data` with one update for each index: that of i, j at `[i, indices[i, j]]` if `axis` is 1.",
)

T = Constraint("T", CLASSIC)
Tind = Constraint("Tind", INDEX_TYPES)

v9 = scatter.first(
    9,
    inputs=[
        Input("data", T, "A tensor of rank 1 or more.", differentiable=True),
        Input("indices", Tind, "Of the rank of `data`; -1 is the last along `axis`.", differentiable=False),
        Input("updates", T, "One element for each index.", differentiable=True),
    ],
    outputs=[Output("output", T, "A copy of `data` with the updates.", differentiable=True)],
    attributes=[AXIS],
)
v11 = v9.retire(11, "Replaced by ScatterElements, which computes the same.")

v9.infer(infer_elements)
v9.evaluate(elements)
v9.lower(scattering_kernels.elements)
v9.absent("downgrade", "no older operator writes at indices")


@v11.upgrade
def take_the_new_name(b: Builder, data: Value, indices: Value, updates: Value, /, *, axis: int) -> Value:
    return b.ScatterElements(data, indices, updates, axis=axis)


@v11.downgrade
def same_call(b: Builder, data: Value, indices: Value, updates: Value, /, *, axis: int) -> Value:
    return b.Scatter(data, indices, updates, axis=axis)


@scatter.examples
def examples() -> Iterator[Example]:
    places, updates = [[1, 0, 2], [0, 2, 1]], [[1, 1.5, 2], [3, 3.5, 4]]
    line, columns = np.array([[1, 2, 3, 4, 5]], np.float32), np.array([[1, -2]], np.int32)
    for opset in (9, 11):
        zeros = np.zeros((3, 3), np.float32)
        yield Example(opset, zeros, places, updates, expect=[[[3, 1.5, 0], [1, 0, 4], [0, 3.5, 2]]])
        yield Example(opset, line, columns, [[6, 7]], axis=1, expect=[[[1, 6, 3, 7, 5]]])
