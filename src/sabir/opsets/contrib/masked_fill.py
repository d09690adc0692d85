"""MaskedFill: the strings that a mask keeps."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.shapes.ranks import check_alike, check_rank, hold
from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

masked_fill = Operator(
    "MaskedFill",
    domain="ai.onnx.contrib",
    summary="The strings whose mask is true, one after another.",
    body_opset=18,
)

v1 = strings.without_kernels(
    masked_fill.first(
        1,
        inputs=[
            Input("value", strings.TEXT, "Strings, [N]."),
            Input("mask", "tensor(bool)", "Which of them are kept, [N]."),
        ],
        outputs=[Output("output", strings.TEXT, "The strings that are kept, [M].")],
    )
)


@v1.infer
def infer(value: TensorType, mask: TensorType, /) -> TensorType:
    check_rank("value", value, 1)
    check_rank("mask", mask, 1)
    check_alike(["value", "mask"], [value, mask])
    return TensorType(value.element, (None,))


@v1.evaluate
def evaluate(value: Array, mask: Array, /) -> Array:
    hold(infer, value, mask)
    return value[mask]


@v1.body
def body(b: Builder, value: Value, mask: Value, /) -> Value:
    return b.Compress(value, mask, axis=0)


@masked_fill.examples
def examples() -> Iterator[Example]:
    yield Example(1, ["a", "b", "c"], [True, False, True], expect=[["a", "c"]])
    yield Example(1, np.zeros(0, object), np.zeros(0, bool), expect=[np.zeros(0, object)])
