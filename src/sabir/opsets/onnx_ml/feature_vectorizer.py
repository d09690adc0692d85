"""FeatureVectorizer: features side by side."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Dim, TensorType, total
from sabir.loops import Expression, NotLowered, Size
from sabir.opsets.families.classification import classifier_kernels
from sabir.opsets.families.classification.classifiers import FEATURE_TYPES, FLOAT, batch
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.typing import Array, Ints
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output

feature_vectorizer = Operator(
    "FeatureVectorizer",
    domain="ai.onnx.ml",
    summary="Feature matrices joined along the second dimension, each cut or padded with 0 to its size.",
)

T1 = Constraint("T1", FEATURE_TYPES)

v1 = feature_vectorizer.first(
    1,
    inputs=[Input("X", T1, "Matrices [N, C]; a vector [C] is one row.", variadic=True)],
    outputs=[Output("Y", "tensor(float)", "Shape [N, sum of the sizes].")],
    attributes=[
        Attribute("inputdimensions", "ints", "The columns of each input in Y; all columns if absent.")
    ],
)


@v1.infer
def infer(*x: TensorType, inputdimensions: Ints) -> TensorType:
    count = same_dim([batch(t) for t in x], "rows")
    sizes: Sequence[Dim] = [None if t.shape is None else t.shape[-1] for t in x]
    if inputdimensions is not None and len(inputdimensions) != len(x):
        raise InferenceError(f"there are {len(inputdimensions)} inputdimensions for {len(x)} inputs")
    return TensorType(FLOAT, (count, total(sizes if inputdimensions is None else inputdimensions)))


@v1.evaluate
def evaluate(*x: Array, inputdimensions: Ints) -> Array:
    wrong = next((a for a in x if a.ndim not in {1, 2}), None)
    if wrong is not None:
        raise ValueError(f"features must have shape [N, C] or [C], not {list(wrong.shape)}")
    parts = [a.reshape(1, -1) if a.ndim == 1 else a for a in x]
    sizes = [a.shape[1] for a in parts] if inputdimensions is None else inputdimensions
    if len(sizes) != len(parts) or len({len(a) for a in parts}) > 1 or min(sizes) < 0:
        shapes = ", ".join(str(list(a.shape)) for a in parts)
        raise ValueError(f"features of shapes {shapes} do not fit inputdimensions {list(sizes)}")
    whole = allotted((len(parts[0]), sum(sizes)), np.dtype(np.float32), sum(a.size for a in x))
    y = np.zeros(whole, np.float32)
    start = 0
    for part, size in zip(parts, sizes, strict=True):
        kept = min(size, part.shape[1])
        y[:, start : start + kept] = part[:, :kept]
        start += size
    return y


@v1.lower
def lower(*x: Expression, inputdimensions: Ints) -> Expression:
    sizes = [a.shape[-1] for a in x] if inputdimensions is None else inputdimensions
    if len(sizes) != len(x):
        raise NotLowered("there is not one size for each input")
    parts = [_fitted(classifier_kernels.as_rows(a), size) for a, size in zip(x, sizes, strict=True)]
    return loops.join(parts, 1)


def _fitted(x: Expression, size: Size) -> Expression:
    """Return the first features of rows, filled with zeros to so many."""
    x, own = loops.cast(x, "float"), x.shape[1]
    if loops.equal(size, own):
        return x
    kept = loops.smaller(size, own)
    if kept is None or not loops.at_least(size, 0):
        raise NotLowered("whether features are cut is known at run time only")
    return loops.pad(loops.narrow(x, 1, 0, kept), (0, 0), (0, size - kept), 0)


@feature_vectorizer.examples
def examples() -> Iterator[Example]:
    f = np.float32
    a, b = np.array([[1, 2], [3, 4]], f), [[5], [6]]
    yield Example(1, a, b, inputdimensions=[2, 1], expect=[[[1, 2, 5], [3, 4, 6]]])
    yield Example(1, a, b, expect=[[[1, 2, 5], [3, 4, 6]]])
    yield Example(1, a, b, inputdimensions=[1, 3], expect=[[[1, 5, 0, 0], [3, 6, 0, 0]]])
    row = np.array([1, 2, 3], np.int32)  # a vector is one row: onnxruntime agrees
    yield Example(1, row, row[None, :1], inputdimensions=[2, 2], expect=[[[1, 2, 1, 0]]])
    yield Example(1, np.zeros((0, 2)), inputdimensions=[3], expect=[np.zeros((0, 3), f)])
