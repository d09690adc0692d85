"""ArgMin: where along an axis the least element is."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.opsets.families import extremes
from sabir.schema import BFLOAT16, NUMBERS, Attribute, Constraint, Example, Input, Operator, Output

arg_min = Operator("ArgMin", summary="The index of the least element along `axis`; a NaN counts as that.")

T = Constraint("T", NUMBERS)

v1 = arg_min.first(
    1,
    inputs=[Input("data", T, "A tensor of rank 1 or more.", differentiable=False)],
    outputs=[Output("reduced", "tensor(int64)", "The indices.", differentiable=False)],
    attributes=[
        Attribute("keepdims", "int", "1: the axis stays, with size 1; 0: it goes.", default=1),
        Attribute("axis", "int", "The axis to search along.", default=0),
    ],
)
v11 = v1.restate(11, "A negative `axis` counts from the back.")
v12 = v11.extend(
    12,
    "`select_last_index` asks for the last of several least elements.",
    attributes=[
        Attribute("select_last_index", "int", "Of several least, 0: the first, 1: the last.", default=0)
    ],
)
v13 = v12.widen(13, T=BFLOAT16)

v1.infer(extremes.infer)
v1.evaluate(extremes.first(np.argmin))
v12.evaluate(extremes.first_or_last(np.argmin))


@arg_min.examples
def examples() -> Iterator[Example]:
    x = np.array([[2, 1, 1], [0, 4, 0]], np.float32)
    for opset in (1, 11, 12, 13):
        yield Example(opset, x, expect=[[[1, 0, 1]]])
        yield Example(opset, x, axis=1, keepdims=0, expect=[[1, 0]])
        yield Example(opset, x.astype(np.int8), axis=1, expect=[[[1], [0]]])
        yield Example(opset, np.zeros((0, 2), np.float16), axis=1, expect=[np.zeros((0, 1), np.int64)])
    yield Example(11, x, axis=-2, keepdims=0, expect=[[1, 0, 1]])
    for opset in (12, 13):
        yield Example(opset, x, axis=-1, keepdims=0, select_last_index=1, expect=[[2, 2]])
        yield Example(opset, x, axis=0, select_last_index=1, expect=[[[1, 0, 1]]])
    yield Example(13, np.array([2**64 - 1, 2**64 - 2], np.uint64), expect=[[1]])
    special = np.array([[np.inf, np.inf], [1, np.nan], [np.nan, -np.inf]])
    for kind in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
        yield Example(13, special.astype(kind), axis=1, keepdims=0, expect=[[0, 1, 0]])
        yield Example(13, special.astype(kind), axis=1, keepdims=0, select_last_index=1, expect=[[1, 1, 0]])
