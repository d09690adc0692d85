"""ScatterElements: one element of a tensor updated for each index."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.building.calls import previous_opset
from sabir.opsets.families.indexing import scatter_gradients, scattering, scattering_kernels
from sabir.opsets.families.indexing.indexing import AXIS, INDEX_TYPES
from sabir.opsets.families.indexing.scattering import (
    DUPLICATES,
    EXTREMES,
    REDUCTION,
    elements,
    infer_elements,
)
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, CLASSIC, Constraint, Example, Input, Operator, Output

scatter_elements = Operator(
    "ScatterElements",
    summary="`data` with one update for each index: that of i, j at `[i, indices[i, j]]` if `axis` is 1.",
)

T = Constraint("T", CLASSIC)
Tind = Constraint("Tind", INDEX_TYPES)

v11 = scatter_elements.first(
    11,
    inputs=[
        Input("data", T, "A tensor of rank 1 or more.", differentiable=True),
        Input("indices", Tind, "Of the rank of `data`; -1 is the last along `axis`.", differentiable=False),
        Input("updates", T, f"One element for each index. {DUPLICATES}", differentiable=True),
    ],
    outputs=[Output("output", T, "A copy of `data` with the updates.", differentiable=True)],
    attributes=[AXIS],
)
v13 = v11.widen(13, T=BFLOAT16)
v16 = v13.extend(16, "`reduction` combines updates with the old values.", attributes=[REDUCTION])
v18 = v16.restate(18, "The reductions max and min.", values={"reduction": EXTREMES})

v11.infer(infer_elements)
v11.evaluate(elements)
v11.lower(scattering_kernels.elements)


@v11.downgrade
def take_the_old_name(b: Builder, data: Value, indices: Value, updates: Value, /, *, axis: int) -> Value:
    with previous_opset(b):
        return b.Scatter(data, indices, updates, axis=axis)


@v18.gradient
def gradient(
    g: Gradient, data: Value, indices: Value, updates: Value, /, *, axis: int, reduction: str
) -> tuple[Value, None, Value]:
    """Of updates for one index only the last has one, and equal extremes share theirs."""

    def scatter(data: Value, updates: Value, reduction: str = scattering.NONE) -> Value:
        return g.ScatterElements(data, indices, updates, axis=axis, reduction=reduction)

    return scatter_gradients.gradient(
        g, data, updates, reduction, scatter, lambda x: g.GatherElements(x, indices, axis=axis)
    )


@scatter_elements.examples
def examples() -> Iterator[Example]:
    f = np.float32
    places = [[1, 0, 2], [0, 2, 1]]
    updates = [[1, 1.5, 2], [3, 3.5, 4]]
    rows = [[3, 1.5, 0], [1, 0, 4], [0, 3.5, 2]]
    line, columns = np.array([[1, 2, 3, 4, 5]], f), np.array([[1, -2]], np.int32)
    for opset in (11, 13, 16, 18):
        yield Example(opset, np.zeros((3, 3), f), places, updates, expect=[rows])
        yield Example(opset, line, columns, [[6, 7]], axis=-1, expect=[[[1, 6, 3, 7, 5]]])
        words = ["a", "b"]
        yield Example(opset, words, [1], ["c"], expect=[["a", "c"]])
        yield Example(opset, line, np.zeros((0, 5), np.int64), np.zeros((0, 5), f), expect=[line])
    # [1, 2, 3] after the updates 2 and -4 of its last element
    last = {"add": 1, "mul": -24, "max": 3, "min": -4, "none": -4}
    for reduction, y in last.items():
        for kind in (f, np.int8, np.float16, ml_dtypes.bfloat16):
            yield Example(
                18, np.array([1, 2, 3], kind), [2, -1], [2, -4], reduction=reduction, expect=[[1, 2, y]]
            )
    full = np.array([100], np.int8)
    yield Example(16, full, [0, 0], full.repeat(2), reduction="add", expect=[[44]])
    yield Example(18, np.array([1], f), [0], [np.nan], reduction="max", expect=[[np.nan]])
    halves = np.full(3000, 1, np.float16)  # a sum in float16 would stay below 2048
    yield Example(
        18, np.zeros(1, np.float16), np.zeros(3000, np.int64), halves, reduction="add", expect=[[3000]]
    )
