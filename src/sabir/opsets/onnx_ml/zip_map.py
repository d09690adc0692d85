"""ZipMap: scores with their labels."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import MapType, SequenceType, TensorType
from sabir.opsets.families.classification.classifiers import FLOAT, INT64, STRING, batch
from sabir.opsets.typing import Array, Ints, Strings
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, bound_once, moving

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


def _pairs(labels: Sequence[Any], items: Iterator[Any]) -> list[dict[Any, Any]]:
    a, b = labels
    return [{a: p, b: q} for p, q in zip(items, items, strict=True)]


def _triples(labels: Sequence[Any], items: Iterator[Any]) -> list[dict[Any, Any]]:
    a, b, c = labels
    return [{a: p, b: q, c: r} for p, q, r in zip(items, items, items, strict=True)]


def _maps(labels: Sequence[Any], items: Iterator[Any]) -> list[dict[Any, Any]]:
    return [dict(zip(labels, row, strict=True)) for row in zip(*[items] * len(labels), strict=True)]


_MAPS = {2: _pairs, 3: _triples}  # by the number of labels: these take half as long as `dict`


def _zipping(*, classlabels_int64s: Ints, classlabels_strings: Strings) -> Callable[[Array], list[Any]]:
    """Return the function that makes a map of each row."""
    labels = tuple(classlabels_strings or classlabels_int64s or ())
    count = len(labels)

    maps = _MAPS.get(count, _maps)

    @moving
    def zipped(x: Array) -> list[dict[Any, Any]]:
        if x.ndim not in {1, 2} or x.shape[-1] != count or not count:
            raise ValueError(f"shape {list(x.shape)} does not have one column for each of {count} labels")
        return maps(labels, x.flat)  # a view of each row would take longer than its map

    return zipped


@v1.evaluate
@bound_once(_zipping)
def evaluate(x: Array, /, *, classlabels_int64s: Ints, classlabels_strings: Strings) -> list[dict[Any, Any]]:
    return _zipping(classlabels_int64s=classlabels_int64s, classlabels_strings=classlabels_strings)(x)


@zip_map.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[1.5, -2], [np.inf, 0]], f)
    numbered = [{3: f(1.5), 1: f(-2)}, {3: f(np.inf), 1: f(0)}]
    yield Example(1, x, classlabels_int64s=[3, 1], expect=[numbered])
    yield Example(1, x[0], classlabels_strings=["a", "b"], expect=[[{"a": f(1.5), "b": f(-2)}]])
    yield Example(1, x[:0], classlabels_strings=["a", "b"], expect=[[]])
