"""ScatterND: one part of a tensor updated for each tuple of indices."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.indexing import scatter_gradients, scattering, scattering_kernels
from sabir.opsets.families.indexing.indexing import TUPLES
from sabir.opsets.families.indexing.scattering import DUPLICATES, EXTREMES, REDUCTION, infer_tuples, tuples
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import shape_of, tuple_numbers
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, CLASSIC, Constraint, Example, Input, Operator, Output

scatter_nd = Operator(
    "ScatterND",
    summary="`data` with an update for each tuple, a last row of `indices`: `updates[i]` at `indices[i]`.",
)

T = Constraint("T", CLASSIC)

v11 = scatter_nd.first(
    11,
    inputs=[
        Input("data", T, "A tensor of rank 1 or more.", differentiable=True),
        TUPLES,
        Input("updates", T, f"The parts of `data` at the tuples. {DUPLICATES}", differentiable=True),
    ],
    outputs=[Output("output", T, "A copy of `data` with the updates.", differentiable=True)],
)
v13 = v11.widen(13, T=BFLOAT16)
v16 = v13.extend(16, "`reduction` combines updates with the old values.", attributes=[REDUCTION])
v18 = v16.restate(18, "The reductions max and min.", values={"reduction": EXTREMES})

v11.infer(infer_tuples)
v11.evaluate(tuples)
v11.lower(scattering_kernels.tuples)


@v11.downgrade
def scatter_rows(b: Builder, data: Value, indices: Value, updates: Value, /) -> Value:
    """Write the updates into a matrix of which each row is a part of `data`."""
    places, width = tuple_numbers(b, data, indices)
    matrix = b.Flatten(data, axis=width)
    rows = b.Flatten(updates, axis=len(shape_of("indices", indices)) - 1)
    chosen = b.Expand(b.Reshape(places, as_input(b, "column", [-1, 1])), b.Shape(rows))
    return b.Reshape(b.ScatterElements(matrix, chosen, rows, axis=0), b.Shape(data))


@v18.gradient
def gradient(
    g: Gradient, data: Value, indices: Value, updates: Value, /, *, reduction: str
) -> tuple[Value, None, Value]:
    """Of updates for one tuple only the last has one, and equal extremes share theirs."""

    def scatter(data: Value, updates: Value, reduction: str = scattering.NONE) -> Value:
        return g.ScatterND(data, indices, updates, reduction=reduction)

    return scatter_gradients.gradient(g, data, updates, reduction, scatter, lambda x: g.GatherND(x, indices))


@scatter_nd.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.arange(8, dtype=f).reshape(2, 2, 2)
    for opset in (11, 13, 16, 18):
        yield Example(
            opset, x, [[1]], np.full((1, 2, 2), 9, f), expect=[[[[0, 1], [2, 3]], [[9, 9], [9, 9]]]]
        )
        yield Example(
            opset, x, [[0, -1, 1], [1, 0, 0]], [-3, -4], expect=[[[[0, 1], [2, -3]], [[-4, 5], [6, 7]]]]
        )
        yield Example(opset, x, [1, 0], [8, 9], expect=[[[[0, 1], [2, 3]], [[8, 9], [6, 7]]]])
        yield Example(opset, x, np.zeros((0, 2), np.int64), np.zeros((0, 2), f), expect=[x])
    # the last row of [[1, 2], [3, 4]] after the updates [2, -1] and [-3, 5]
    last = {"add": [2, 8], "mul": [-18, -20], "max": [3, 5], "min": [-3, -1], "none": [-3, 5]}
    for reduction, row in last.items():
        for kind in (f, np.int32, ml_dtypes.bfloat16):
            yield Example(
                18,
                np.array([[1, 2], [3, 4]], kind),
                [[1], [-1]],
                [[2, -1], [-3, 5]],
                reduction=reduction,
                expect=[[[1, 2], row]],
            )
    yield Example(16, [7], np.zeros((3, 1), np.int64), [1, 2, 3], reduction="mul", expect=[[42]])
    words = [["a"], ["b"]]
    yield Example(13, words, [[0]], [["c"]], expect=[[["c"], ["b"]]])
    yield Example(18, x, np.zeros((1, 0), np.int64), x[None] + 1, expect=[x + 1])
