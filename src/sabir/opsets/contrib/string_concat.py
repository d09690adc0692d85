"""StringConcat: strings joined in pairs."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import check_alike
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

string_concat = Operator(
    "StringConcat", domain="ai.onnx.contrib", summary="Each string of `left`, then that of `right`."
)

v1 = strings.without_kernels(
    string_concat.first(
        1,
        inputs=[
            Input("left", strings.TEXT, "Strings, of any shape."),
            Input("right", strings.TEXT, "Strings, of the same shape."),
        ],
        outputs=[Output("output", strings.TEXT, "The shape of the inputs.")],
    )
)


@v1.infer
def infer(left: TensorType, right: TensorType, /) -> TensorType:
    check_alike(["left", "right"], [left, right])
    if left.shape is None or right.shape is None:
        return TensorType(left.element, left.shape or right.shape)
    pairs = zip(left.shape, right.shape, strict=True)
    return left.with_shape(*(same_dim(pair, "the sizes of `left` and `right`") for pair in pairs))


@v1.evaluate
def evaluate(left: Array, right: Array, /) -> Array:
    check_alike(["left", "right"], [left, right])
    return np.asarray(left + right, object)


@string_concat.examples
def examples() -> Iterator[Example]:
    yield Example(1, [["a", ""], ["é", "d"]], [["b", "c"], ["", "e"]], expect=[[["ab", "c"], ["é", "de"]]])
