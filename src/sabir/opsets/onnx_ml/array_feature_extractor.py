"""ArrayFeatureExtractor: selected columns."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import TensorType, product
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.classification.classifiers import FEATURE_TYPES
from sabir.opsets.typing import Array
from sabir.schema import STRING, Constraint, Example, Input, Operator, Output

array_feature_extractor = Operator(
    "ArrayFeatureExtractor",
    domain="ai.onnx.ml",
    summary="The elements of `X` along its last axis at the indices in `Y`, in that order.",
)

T = Constraint("T", STRING, FEATURE_TYPES)

v1 = array_feature_extractor.first(
    1,
    inputs=[
        Input("X", T, "A tensor of rank 1 or more."),
        Input("Y", "tensor(int64)", "Indices along the last axis, from 0; of any shape, read in order."),
    ],
    outputs=[Output("Z", T, "The shape of X, its last dimension the size of Y; at least of rank 2.")],
)


@v1.infer
def infer(x: TensorType, y: TensorType, /) -> TensorType:
    if x.shape is None:
        return TensorType(x.element)
    if not x.shape:
        raise InferenceError("a scalar has no columns to select")
    return TensorType(x.element, (*(x.shape[:-1] or (1,)), None if y.shape is None else product(y.shape)))


@v1.evaluate
def evaluate(x: Array, y: Array, /) -> Array:
    if x.ndim == 0:
        raise ValueError("a scalar has no columns to select")
    wrong = y[(y < 0) | (y >= x.shape[-1])]
    if wrong.size:
        raise ValueError(f"index {wrong[0]} is outside [0, {x.shape[-1] - 1}]")
    return np.take(x if x.ndim > 1 else x[None], y.ravel(), axis=-1)


@v1.lower
def lower(x: Expression, y: Expression, /) -> Expression:
    if x.rank == 0:
        raise NotLowered("a scalar has no columns")
    x = loops.reshape(x, (1, *x.shape)) if x.rank == 1 else x
    count = product(y.shape)
    if count is None:
        raise NotLowered("the number of indices is unknown")
    places = loops.reshape(y, (count,))
    past = loops.sized("int64", x.shape[-1])  # an index below 0 is an error, as one past the end is
    return loops.take(x, loops.where(loops.apply("lt", places, 0), past, places), -1)


@array_feature_extractor.examples
def examples() -> Iterator[Example]:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    yield Example(1, x, [0, 1], expect=[x[:, :2]])
    yield Example(1, x, [[3], [0], [3]], expect=[x[:, [3, 0, 3]]])
    yield Example(1, x[None], 2, expect=[x[None, :, 2:3]])
    yield Example(1, np.array([5, 6, 7], np.int32), [1], expect=[[[6]]])
    words = np.array([["a", "b"]], object)
    yield Example(1, words, [[1, 0]], expect=[words[:, ::-1]])
    yield Example(1, x.astype(float), np.zeros(0, np.int64), expect=[np.zeros((3, 0))])
