"""GatherElements: one element of a tensor for each index."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families import contents
from sabir.opsets.families.indexing import check_known, checked
from sabir.opsets.families.shapes import axis_in
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, CLASSIC, Attribute, Constraint, Example, Input, Operator, Output, tensors

gather_elements = Operator(
    "GatherElements",
    summary="For each index an element of `data`: at i, j it is `data[i, indices[i, j]]` where `axis` is 1.",
)

T = Constraint("T", CLASSIC)
Tind = Constraint("Tind", tensors("int32", "int64"))

v11 = gather_elements.first(
    11,
    inputs=[
        Input("data", T, "A tensor of rank 1 or more.", differentiable=True),
        Input(
            "indices",
            Tind,
            "Places along `axis`, -1 the last; of the rank of `data`, and no larger but along `axis`.",
            differentiable=False,
        ),
    ],
    outputs=[
        Output("output", T, "One element for each index, in the shape of `indices`.", differentiable=True)
    ],
    attributes=[
        Attribute("axis", "int", "The dimension to index, counted from the back if negative.", default=0)
    ],
)
v13 = v11.widen(13, T=BFLOAT16)


@v11.infer
def infer(data: TensorType, indices: TensorType, /, *, axis: int) -> TensorType:
    kind = TensorType(data.element, indices.shape)
    if data.shape is None or indices.shape is None:
        return kind
    if len(data.shape) != len(indices.shape):
        raise InferenceError(
            f"`data` has rank {len(data.shape)}, `indices` {len(indices.shape)}; they must agree"
        )
    axis = axis_in(axis, len(data.shape))
    check_known(indices.known, data.shape[axis])
    for place, (size, wanted) in enumerate(zip(data.shape, indices.shape, strict=True)):
        if place != axis and isinstance(size, int) and isinstance(wanted, int) and wanted > size:
            raise InferenceError(f"`indices` has {wanted} rows along axis {place}, and `data` {size}")
    places = contents.array_of(indices)
    return kind if places is None else contents.moved(kind, lambda held: _picked(held, places, axis), data)


@v11.evaluate
def evaluate(data: Array, indices: Array, /, *, axis: int) -> Array:
    if data.ndim != indices.ndim:
        raise ValueError(f"`data` has rank {data.ndim}, `indices` {indices.ndim}; they must agree")
    return _picked(data, indices, axis_in(axis, data.ndim))


def _picked(data: Array, indices: Array, axis: int) -> Array:
    """Crop `data` to the indices' shape, since `take_along_axis` would broadcast the two."""
    crop = [*map(slice, indices.shape)]
    crop[axis] = slice(None)
    cropped = data[tuple(crop)]
    if any(cropped.shape[i] != n for i, n in enumerate(indices.shape) if i != axis):
        raise ValueError(f"`indices` {list(indices.shape)} reaches beyond `data` {list(data.shape)}")
    return np.take_along_axis(cropped, checked(indices, data.shape[axis]), axis)


@gather_elements.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)
    for opset in (11, 13):
        yield Example(opset, x, [[1, 2, 0], [2, 0, 0]], expect=[[[4, 8, 3], [7, 2, 3]]])
        yield Example(opset, x, np.array([[-1], [0]], np.int32), axis=1, expect=[[[3], [4]]])
    yield Example(13, x, [[0, 0, 1, 2]], axis=-1, expect=[[[1, 1, 2, 3]]])
    yield Example(13, ["a", "b"], [1, 1], expect=[["b", "b"]])
    yield Example(13, x, np.zeros((0, 3), np.int64), expect=[np.zeros((0, 3), np.float32)])
