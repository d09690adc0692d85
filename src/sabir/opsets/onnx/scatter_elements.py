"""ScatterElements: one element of a tensor written for each index."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families.scattering import EXTREMES, NONE, SUMS, elements, infer_elements
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, CLASSIC, Attribute, Constraint, Example, Input, Operator, Output, tensors

scatter_elements = Operator(
    "ScatterElements",
    summary="`data` with one of `updates` for each index: at i, j to `[i, indices[i, j]]` where `axis` is 1.",
)

T = Constraint("T", CLASSIC)
Tind = Constraint("Tind", tensors("int32", "int64"))

v11 = scatter_elements.first(
    11,
    inputs=[
        Input("data", T, "A tensor of rank 1 or more.", differentiable=True),
        Input(
            "indices",
            Tind,
            "Places along `axis`, -1 the last; of the rank of `data`, and no larger but along `axis`.",
            differentiable=False,
        ),
        Input(
            "updates",
            T,
            "One element for each index; of several for one place the last one stays, or all are reduced.",
            differentiable=True,
        ),
    ],
    outputs=[Output("output", T, "A copy of `data` with the updates in it.", differentiable=True)],
    attributes=[
        Attribute("axis", "int", "The dimension to index, counted from the back if negative.", default=0)
    ],
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
def infer(data: TensorType, indices: TensorType, updates: TensorType, /, *, axis: int) -> TensorType:
    return infer_elements(data, indices, updates, axis=axis)


@v16.infer
def infer_reduced(
    data: TensorType, indices: TensorType, updates: TensorType, /, *, axis: int, reduction: str
) -> TensorType:
    return infer_elements(data, indices, updates, axis=axis, reduction=reduction)


@v11.evaluate
def evaluate(data: Array, indices: Array, updates: Array, /, *, axis: int) -> Array:
    return elements(data, indices, updates, axis, NONE)


@v16.evaluate
def evaluate_reduced(data: Array, indices: Array, updates: Array, /, *, axis: int, reduction: str) -> Array:
    return elements(data, indices, updates, axis, reduction)


@scatter_elements.examples
def examples() -> Iterator[Example]:
    f = np.float32
    places = [[1, 0, 2], [0, 2, 1]]
    updates = [[1, 1.5, 2], [3, 3.5, 4]]
    rows = [[3, 1.5, 0], [1, 0, 4], [0, 3.5, 2]]
    line = np.array([[1, 2, 3, 4, 5]], f)
    for opset in (11, 13, 16, 18):
        yield Example(opset, np.zeros((3, 3), f), places, updates, expect=[rows])
        yield Example(
            opset, line, np.array([[1, -2]], np.int32), [[6, 7]], axis=-1, expect=[[[1, 6, 3, 7, 5]]]
        )
        words = ["a", "b"]
        yield Example(opset, words, [1], ["c"], expect=[["a", "c"]])
        yield Example(opset, line, np.zeros((0, 5), np.int64), np.zeros((0, 5), f), expect=[line])
    cases: list[tuple[str, list[float]]] = [  # reduction, and [1, 2, 3] after 2 and -4 go to its last place
        ("add", [1, 2, 1]),
        ("mul", [1, 2, -24]),
        ("max", [1, 2, 3]),
        ("min", [1, 2, -4]),
        ("none", [1, 2, -4]),
    ]
    for reduction, last in cases:
        for kind in (f, np.int8, np.float16, ml_dtypes.bfloat16):
            yield Example(18, np.array([1, 2, 3], kind), [2, -1], [2, -4], reduction=reduction, expect=[last])
    full = np.array([100], np.int8)
    yield Example(16, full, [0, 0], full.repeat(2), reduction="add", expect=[[44]])
    yield Example(18, np.array([1], f), [0], [np.nan], reduction="max", expect=[[np.nan]])
    halves = np.full(3000, 1, np.float16)  # one after another in halves they would stay below 2048
    yield Example(
        18, np.zeros(1, np.float16), np.zeros(3000, np.int64), halves, reduction="add", expect=[[3000]]
    )
