"""StringToVector: the vectors of integers that a table has of strings."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.text import strings, vectors
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output

string_to_vector = Operator(
    "StringToVector",
    domain="ai.onnx.contrib",
    summary="The vector of integers that a table has of each string.",
)

v1 = strings.without_kernels(
    string_to_vector.first(
        1,
        inputs=[Input("text", strings.TEXT, "Strings, of any shape.")],
        outputs=[Output("token_ids", "tensor(int64)", "The shape of `text`, then the size of a vector.")],
        attributes=[
            vectors.TABLE,
            Attribute("unk", "string", "The vector of other strings; of -1 by default."),
        ],
    )
)


@v1.infer
def infer(text: TensorType, /, *, map: str) -> TensorType:  # ruff: ignore[builtin-argument-shadowing]  the published name
    size = vectors.size_of(vectors.table_of(map))
    return TensorType(INT64, None if text.shape is None else (*text.shape, size))


@v1.evaluate
def evaluate(text: Array, /, *, map: str, unk: str | None) -> Array:  # ruff: ignore[builtin-argument-shadowing]  the published name
    table = vectors.table_of(map)
    size = vectors.size_of(table)
    other = (-1,) * size if unk is None else vectors.numbers_of(unk)
    if len(other) != size:
        raise ValueError(f"`unk` has {len(other)} numbers, and the vectors have {size}")
    found = [table.get(strings.as_str(word), other) for word in text.ravel().tolist()]
    return np.array(found, np.int64).reshape(*text.shape, size)


@string_to_vector.examples
def examples() -> Iterator[Example]:
    table = "a\t0 0 1 2\nb\t0 1 2 3"
    yield Example(1, ["b", "a"], map=table, expect=[[[0, 1, 2, 3], [0, 0, 1, 2]]])
    yield Example(1, [["a"], ["z"]], map=table, unk="5 6 7 8", expect=[[[[0, 0, 1, 2]], [[5, 6, 7, 8]]]])
    yield Example(1, "z", map="a\t5", expect=[[-1]])
    yield Example(1, np.zeros(0, object), map=table, expect=[np.zeros((0, 4), np.int64)])
