"""VectorToString: the strings that a table has of vectors of integers."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.elements import STRING
from sabir.ir import TensorType, may_be_equal
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.text import strings, vectors
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output

vector_to_string = Operator(
    "VectorToString",
    domain="ai.onnx.contrib",
    summary="The string that a table has of each vector along the last axis.",
)

v1 = strings.without_kernels(
    vector_to_string.first(
        1,
        inputs=[
            Input(
                "token_ids", "tensor(int64)", "Vectors, [..., size]; for vectors of one number of any shape."
            )
        ],
        outputs=[Output("text", strings.TEXT, "The strings, [...]; of any shape for vectors of one number.")],
        attributes=[vectors.TABLE, Attribute("unk", "string", "The string of other vectors.", default="")],
    )
)


@v1.infer
def infer(ids: TensorType, /, *, map: str) -> TensorType:  # ruff: ignore[builtin-argument-shadowing]  the published name
    size = vectors.size_of(vectors.table_of(map))
    if ids.shape is None or size == 1:
        return TensorType(STRING, ids.shape)
    if not ids.shape or not may_be_equal(ids.shape[-1], size):
        raise InferenceError(f"the table has vectors of {size} numbers, and `token_ids` is {ids}")
    return TensorType(STRING, ids.shape[:-1])


@v1.evaluate
def evaluate(ids: Array, /, *, map: str, unk: str) -> Array:  # ruff: ignore[builtin-argument-shadowing]  the published name
    hold(infer, ids, map=map)
    table = vectors.table_of(map)
    size = vectors.size_of(table)
    words = {numbers: word for word, numbers in table.items()}
    shape = ids.shape if size == 1 else ids.shape[:-1]
    y: Array = np.empty(shape, object)
    y.reshape(-1)[:] = [words.get(tuple(row), unk) for row in ids.reshape(y.size, size).tolist()]
    return y


@vector_to_string.examples
def examples() -> Iterator[Example]:
    table = "a\t0 0 1 2\nb\t0 1 2 3"
    yield Example(1, [[0, 0, 1, 2], [9, 9, 9, 9]], map=table, unk="?", expect=[["a", "?"]])
    yield Example(1, [[[0, 1, 2, 3]]], map=table, expect=[[["b"]]])
    yield Example(1, [5, 6], map="a\t5", expect=[["a", ""]])
    yield Example(1, np.zeros((0, 4), np.int64), map=table, expect=[np.zeros(0, object)])
