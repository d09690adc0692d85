"""ScatterND: one part of a tensor written for each tuple of indices."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families.scattering import EXTREMES, NONE, SUMS, infer_tuples, tuples
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, CLASSIC, Attribute, Constraint, Example, Input, Operator, Output

scatter_nd = Operator(
    "ScatterND",
    summary="`data` with a part of `updates` for each tuple, a last row of `indices`: at i to `indices[i]`.",
)

T = Constraint("T", CLASSIC)

v11 = scatter_nd.first(
    11,
    inputs=[
        Input("data", T, "A tensor of rank 1 or more.", differentiable=True),
        Input(
            "indices",
            "tensor(int64)",
            "Tuples along the last dimension, each of places along the first axes of `data`; -1 is the last.",
            differentiable=False,
        ),
        Input(
            "updates",
            T,
            "`indices.shape[:-1]`, then the dimensions of `data` that no tuple indexes; of several parts for"
            " one place the last one stays, or all are reduced.",
            differentiable=True,
        ),
    ],
    outputs=[Output("output", T, "A copy of `data` with the updates in it.", differentiable=True)],
)
v13 = v11.widen(13, T=BFLOAT16)
v16 = v13.extend(
    16,
    "`reduction` joins updates with what is in their place.",
    attributes=[
        Attribute(
            "reduction",
            "string",
            "none to replace what is there; add, mul, max or min to join each update with it.",
            default=NONE,
            values=SUMS,
        )
    ],
)
v18 = v16.restate(18, "The reductions max and min.", values={"reduction": EXTREMES})


@v11.infer
def infer(data: TensorType, indices: TensorType, updates: TensorType, /) -> TensorType:
    return infer_tuples(data, indices, updates)


@v16.infer
def infer_reduced(
    data: TensorType, indices: TensorType, updates: TensorType, /, *, reduction: str
) -> TensorType:
    return infer_tuples(data, indices, updates, reduction=reduction)


@v11.evaluate
def evaluate(data: Array, indices: Array, updates: Array, /) -> Array:
    return tuples(data, indices, updates, NONE)


@v16.evaluate
def evaluate_reduced(data: Array, indices: Array, updates: Array, /, *, reduction: str) -> Array:
    return tuples(data, indices, updates, reduction)


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
    # [[1, 2], [3, 4]] after [2, -1] and [-3, 5] go to its last row
    cases: list[tuple[str, list[list[float]]]] = [
        ("add", [[1, 2], [2, 8]]),
        ("mul", [[1, 2], [-18, -20]]),
        ("max", [[1, 2], [3, 5]]),
        ("min", [[1, 2], [-3, -1]]),
        ("none", [[1, 2], [-3, 5]]),
    ]
    for reduction, left in cases:
        for kind in (f, np.int32, ml_dtypes.bfloat16):
            yield Example(
                18,
                np.array([[1, 2], [3, 4]], kind),
                [[1], [-1]],
                [[2, -1], [-3, 5]],
                reduction=reduction,
                expect=[left],
            )
    yield Example(16, [7], np.zeros((3, 1), np.int64), [1, 2, 3], reduction="mul", expect=[[42]])
    words = [["a"], ["b"]]
    yield Example(13, words, [[0]], [["c"]], expect=[[["c"], ["b"]]])
    yield Example(18, x, np.zeros((1, 0), np.int64), x[None] + 1, expect=[x + 1])
