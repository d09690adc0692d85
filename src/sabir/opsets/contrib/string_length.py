"""StringLength: the numbers of characters of strings."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

string_length = Operator(
    "StringLength", domain="ai.onnx.contrib", summary="The number of characters of each string."
)

v1 = strings.without_kernels(
    string_length.first(
        1,
        inputs=[Input("input", strings.TEXT, "Strings, of any shape.")],
        outputs=[Output("output", "tensor(int64)", "The input's shape.")],
    )
)


@v1.infer
def infer(x: TensorType, /) -> TensorType:
    return TensorType(INT64, x.shape)


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    lengths = [len(strings.as_str(word)) for word in x.ravel().tolist()]
    return np.array(lengths, np.int64).reshape(x.shape)


@string_length.examples
def examples() -> Iterator[Example]:
    yield Example(1, [["aé", ""]], expect=[[[2, 0]]])
