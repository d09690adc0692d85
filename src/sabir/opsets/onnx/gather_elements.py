"""GatherElements: one element of a tensor for each index."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, TensorType, Value, product
from sabir.loops import Expression
from sabir.opsets.families.indexing.indexing import AXIS, INDEX_TYPES, check_index_shape, check_known, checked
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes import contents, extents
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import numbered, shape_of, size, sizes, unsqueezed, wrapped
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, CLASSIC, Constraint, Example, Input, Operator, Output

gather_elements = Operator(
    "GatherElements",
    summary="One element of `data` for each index: at i, j `data[i, indices[i, j]]` where `axis` is 1.",
)

T = Constraint("T", CLASSIC)
Tind = Constraint("Tind", INDEX_TYPES)

v11 = gather_elements.first(
    11,
    inputs=[
        Input("data", T, "A tensor of rank 1 or more.", differentiable=True),
        Input("indices", Tind, "Of the rank of `data`; -1 is the last along `axis`.", differentiable=False),
    ],
    outputs=[Output("output", T, "One element for each index.", differentiable=True)],
    attributes=[AXIS],
)
v13 = v11.widen(13, T=BFLOAT16)


@v11.infer
def infer(data: TensorType, indices: TensorType, /, *, axis: int) -> TensorType:
    kind = TensorType(data.element, indices.shape)
    if data.shape is None or indices.shape is None:
        return kind
    check_index_shape(data.shape, indices.shape, axis)
    axis = axis_in(axis, len(data.shape))
    check_known(indices.known, data.shape[axis])
    places = contents.array_of(indices)
    return kind if places is None else contents.moved(kind, lambda known: _picked(known, places, axis), data)


@v11.evaluate
def evaluate(data: Array, indices: Array, /, *, axis: int) -> Array:
    check_index_shape(data.shape, indices.shape, axis)
    return _picked(data, indices, axis_in(axis, data.ndim))


@v11.lower
def lower(data: Expression, indices: Expression, /, *, axis: int) -> Expression:
    """Take the elements by their numbers from a single row of all."""
    check_index_shape(data.shape, indices.shape, axis)
    if data.rank == 1:
        return loops.take(data, indices, 0)
    along, shape = axis_in(axis, data.rank), indices.shape
    places = [indices if i == along else loops.count(shape, i) for i in range(data.rank)]
    row = loops.reshape(data, (product(data.shape) or 0,))
    return loops.take(row, kernels.numbered(places, data.shape), 0)


def _picked(data: Array, indices: Array, axis: int) -> Array:
    """Crop `data` to the shape of the indices, because `take_along_axis` would broadcast them."""
    crop = [*map(slice, indices.shape)]
    crop[axis] = slice(None)
    cropped = data[tuple(crop)]
    return np.take_along_axis(cropped, checked(indices, data.shape[axis]), axis)


@v11.downgrade
def gather_from_row(b: Builder, data: Value, indices: Value, /, *, axis: int) -> Value:
    """Gather the elements by their numbers from a single row of all."""
    rank = len(shape_of("indices", indices))
    along = axis_in(axis, rank)
    counts = [size(b, data, i) for i in range(len(shape_of("data", data)))]
    places = [
        wrapped(b, indices, counts[i])
        if i == along
        else unsqueezed(b, extents.indices(b, sizes(b, indices, [i])), range(1, rank - i))
        for i in range(rank)
    ]
    row = b.Reshape(data, as_input(b, "row", [-1])) if rank > 1 else data
    return b.Gather(row, numbered(b, places, counts), axis=0)


@v13.gradient
def gradient(g: Gradient, data: Value, indices: Value, /, *, axis: int) -> tuple[Value, None]:
    return g.ScatterElements(g.zeros(data), indices, g.dy, axis=axis, reduction="add"), None


@gather_elements.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)
    for opset in (11, 13):
        yield Example(opset, x, [[1, 2, 0], [2, 0, 0]], expect=[[[4, 8, 3], [7, 2, 3]]])
        yield Example(opset, x, np.array([[-1], [0]], np.int32), axis=1, expect=[[[3], [4]]])
    yield Example(13, x, [[0, 0, 1, 2]], axis=-1, expect=[[[1, 1, 2, 3]]])
    yield Example(13, ["a", "b"], [1, 1], expect=[["b", "b"]])
    yield Example(13, x, np.zeros((0, 3), np.int64), expect=[np.zeros((0, 3), np.float32)])
