"""Shape: the dimensions of a tensor, as a tensor."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.indexing.indexing import TO_THE_END
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT8,
    SMALL_TYPES,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    tensors,
)

shape = Operator(
    "Shape", summary="The dimensions of `data` from `start` up to `end`: numpy's `data.shape[start:end]`."
)

T = Constraint("T", CLASSIC)
T1 = Constraint("T1", tensors("int64"))

v1 = shape.first(
    1,
    inputs=[Input("data", T, "A tensor of any rank.", differentiable=False)],
    outputs=[Output("shape", T1, "One element for each selected dimension.", differentiable=False)],
)
v13 = v1.widen(13, T=BFLOAT16)
v15 = v13.extend(
    15,
    "`start` and `end` select a range of the dimensions.",
    attributes=[
        Attribute("end", "int", "The exclusive end; counts from the back if negative, clamped."),
        Attribute("start", "int", "The first axis; counts from the back if negative, clamped.", default=0),
    ],
)
v25 = v15.widen_stepwise({19: FLOAT8, **SMALL_TYPES}, "T")


@v1.infer
def infer(data: TensorType, /, *, start: int = 0, end: int | None = None) -> TensorType:
    if data.shape is None:
        return TensorType(INT64, (None,))
    dims = data.shape[start:end]
    return TensorType(INT64, (len(dims),), dims)


@v1.evaluate
def evaluate(data: Array, /, *, start: int = 0, end: int | None = None) -> Array:
    return np.array(data.shape[start:end], np.int64)


@v15.downgrade
def slice_the_whole_shape(b: Builder, data: Value, /, *, start: int, end: int | None) -> Value:
    whole = b.Shape(data)
    if start == 0 and end is None:
        return whole
    return b.Slice(
        whole, as_input(b, "start", [start]), as_input(b, "end", [TO_THE_END if end is None else end])
    )


@shape.examples
def examples() -> Iterator[Example]:
    data = np.zeros((2, 0, 4), np.float32)
    for opset in (1, 13, 15, 19, 21, 23, 24, 25):
        yield Example(opset, data, expect=[[2, 0, 4]])
    yield Example(1, "text", expect=[[]])
    for start, end, dims in (
        (1, None, [0, 4]),
        (-1, None, [4]),
        (0, -1, [2, 0]),
        (-9, 9, [2, 0, 4]),
        (2, 1, []),
    ):
        yield Example(15, data, start=start, end=end, expect=[dims])
