"""ZipMap: scores with their labels."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import MapType, SequenceType, TensorType
from sabir.opsets.families.classification.classifiers import FLOAT, INT64, STRING, batch
from sabir.opsets.typing import Array, Ints, Strings
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output

zip_map = Operator(
    "ZipMap", domain="ai.onnx.ml", summary="For each row a map from the class labels to the row's elements."
)

T = Constraint("T", {"seq(map(int64, float))", "seq(map(string, float))"})

v1 = zip_map.first(
    1,
    inputs=[Input("X", "tensor(float)", "Rows [N, C], or one row [C], one column per label.")],
    outputs=[Output("Z", T, "A sequence of N maps.")],
    attributes=[
        Attribute("classlabels_int64s", "ints", "The keys, if they are integers."),
        Attribute("classlabels_strings", "strings", "The keys, if they are strings."),
    ],
)


v1.absent("lower", "kernels compute tensors, no maps")


@v1.infer
def infer(x: TensorType, /, *, classlabels_int64s: Ints, classlabels_strings: Strings) -> SequenceType:
    if bool(classlabels_int64s) == bool(classlabels_strings):
        raise InferenceError("needs either `classlabels_int64s` or `classlabels_strings`")
    batch(x)
    columns, labels = x.shape[-1] if x.shape else None, classlabels_strings or classlabels_int64s or ()
    if isinstance(columns, int) and columns != len(labels):
        raise InferenceError(f"{x} has {columns} columns for {len(labels)} labels")
    return SequenceType(MapType(STRING if classlabels_strings else INT64, TensorType(FLOAT, ())))


@v1.evaluate
def evaluate(x: Array, /, *, classlabels_int64s: Ints, classlabels_strings: Strings) -> list[dict[Any, Any]]:
    labels = classlabels_strings or classlabels_int64s or ()
    if x.ndim not in {1, 2} or x.shape[-1] != len(labels):
        raise ValueError(f"shape {list(x.shape)} does not have one column for each of {len(labels)} labels")
    columns = map(list, np.atleast_2d(x).T)  # a view of each row would take longer than its map
    return [dict(zip(labels, row, strict=True)) for row in zip(*columns, strict=True)]


@zip_map.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[1.5, -2], [np.inf, 0]], f)
    numbered = [{3: f(1.5), 1: f(-2)}, {3: f(np.inf), 1: f(0)}]
    yield Example(1, x, classlabels_int64s=[3, 1], expect=[numbered])
    yield Example(1, x[0], classlabels_strings=["a", "b"], expect=[[{"a": f(1.5), "b": f(-2)}]])
    yield Example(1, x[:0], classlabels_strings=["a", "b"], expect=[[]])
