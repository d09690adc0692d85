"""DictVectorizer: a map's values in the order of a vocabulary."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import MapType, TensorType
from sabir.opsets.typing import Array, Ints, Strings
from sabir.schema import STRING, Attribute, Constraint, Example, Input, Operator, Output, tensors

dict_vectorizer = Operator(
    "DictVectorizer",
    domain="ai.onnx.ml",
    summary="The map's value for each word of a vocabulary, or 0 where the map lacks the word.",
)

T1 = Constraint(
    "T1",
    {"map(int64, double)", "map(int64, float)", "map(int64, string)"},
    {"map(string, double)", "map(string, float)", "map(string, int64)"},
)
T2 = Constraint("T2", STRING, tensors("double", "float", "int64"))

v1 = dict_vectorizer.first(
    1,
    inputs=[Input("X", T1, "A map whose keys are words of the vocabulary; others are ignored.")],
    outputs=[Output("Y", T2, "Shape [1, C], C the length of the vocabulary, of the map's value type.")],
    attributes=[
        Attribute("int64_vocabulary", "ints", "The words of a map from integers."),
        Attribute("string_vocabulary", "strings", "The words of a map from strings."),
    ],
)


v1.absent("lower", "kernels compute tensors, no maps")


@v1.infer
def infer(x: MapType, /, *, int64_vocabulary: Ints, string_vocabulary: Strings) -> TensorType:
    value = x.value.element if isinstance(x.value, TensorType) else element("float")
    if not string_vocabulary and not int64_vocabulary:
        raise InferenceError("needs `string_vocabulary` or `int64_vocabulary`")
    return TensorType(value, (1, len(string_vocabulary or int64_vocabulary or ())))


@v1.evaluate
def evaluate(x: Mapping[Any, Any], /, *, int64_vocabulary: Ints, string_vocabulary: Strings) -> Array:
    words = string_vocabulary or int64_vocabulary
    if not words:
        raise ValueError("needs `string_vocabulary` or `int64_vocabulary`")
    first = np.asarray(next(iter(x.values()), np.float32(0)))
    if first.dtype.kind in "OUT":
        return np.array([[x.get(word, "") for word in words]], object)
    return np.array([[x.get(word, 0) for word in words]], first.dtype)


@dict_vectorizer.examples
def examples() -> Iterator[Example]:
    words = ["a", "c", "b", "z"]
    x = {"a": np.int64(4), "c": np.int64(8)}  # the standard's own example
    yield Example(1, x, string_vocabulary=words, expect=[[[4, 8, 0, 0]]])
    floats = {"z": np.float32(-1.5), "unheard": np.float32(2)}
    yield Example(1, floats, string_vocabulary=words, expect=[[[0, 0, 0, -1.5]]])
    numbered = {3: np.float64(0.1), 5: np.float64(np.inf)}
    yield Example(1, numbered, int64_vocabulary=[5, 4, 3], expect=[np.array([[np.inf, 0, 0.1]])])
    yield Example(1, {1: "x"}, int64_vocabulary=[2, 1], expect=[[["", "x"]]])
    twice = np.array([[1, 1]], np.float32)
    yield Example(1, {"a": np.float32(1)}, string_vocabulary=["a", "a"], expect=[twice])
