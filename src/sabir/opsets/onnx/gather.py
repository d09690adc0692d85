"""Gather: the slices of a tensor at indices along one axis."""

from collections.abc import Callable, Iterator

import numpy as np

from sabir import loops
from sabir.ir import TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.indexing.indexing import AXIS, INDEX_TYPES, check_known
from sabir.opsets.families.indexing.move_gradients import as_tuples, zeros_of
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.families.shapes.size_vectors import padded_along
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, CLASSIC, Constraint, Example, Input, Operator, Output, bound_once, moving

gather = Operator(
    "Gather", summary="The slices of `data` along `axis` at `indices`: numpy's `take(data, indices, axis)`."
)

T = Constraint("T", CLASSIC)
Tind = Constraint("Tind", INDEX_TYPES)

v1 = gather.first(
    1,
    inputs=[
        Input("data", T, "A tensor of rank 1 or more.", differentiable=True),
        Input("indices", Tind, "Of any shape; -1 is the last along `axis`.", differentiable=False),
    ],
    outputs=[
        Output("output", T, "The shape of `data`, that of `indices` replacing `axis`.", differentiable=True)
    ],
    attributes=[AXIS],
)
v11 = v1.restate(11, "Negative `indices` count from the back.")
v13 = v11.widen(13, T=BFLOAT16)


@v1.infer
def infer(data: TensorType, indices: TensorType, /, *, axis: int) -> TensorType:
    if data.shape is None:
        return TensorType(data.element)
    axis = axis_in(axis, len(data.shape))
    check_known(indices.known, data.shape[axis])
    if indices.shape is None:
        return TensorType(data.element)
    kind = TensorType(data.element, (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))
    places = contents.array_of(indices)
    return kind if places is None else contents.moved(kind, lambda known: _taken(known, places, axis), data)


@v1.lower
def lower(data: Expression, indices: Expression, /, *, axis: int) -> Expression:
    return loops.take(data, indices, axis)


def _taking(*, axis: int) -> Callable[[Array, Array], Array]:
    """Return the function of the operands."""

    @moving
    def taken(data: Array, indices: Array) -> Array:
        return _taken(data, indices, axis if data.ndim and not axis else axis_in(axis, data.ndim))

    return taken


@v1.evaluate
@bound_once(_taking)
def evaluate(data: Array, indices: Array, /, *, axis: int) -> Array:
    return _taken(data, indices, axis_in(axis, data.ndim))


def _taken(data: Array, indices: Array, axis: int) -> Array:
    if indices.ndim == 0:
        return data[*(slice(None),) * axis, int(indices), ...]  # a view; `take` copies
    if data.flags.c_contiguous:
        return data.take(indices, axis)  # `np.take` does the same after more than a microsecond
    # slower by the index, but `take` would copy all of `data` first
    return data[*(slice(None),) * axis, indices]


@v13.gradient
def gradient(g: Gradient, data: Value, indices: Value, /, *, axis: int) -> tuple[Value, None]:
    """Of rows: the axis is in front while they are added up. A slice that is known is surrounded by zeros."""
    axis = axis if axis == 0 else axis_in(axis, g.rank(data))
    around = _around(g, data, indices, axis)
    if around is not None:
        part = g.dy if g.rank(indices) else g.Unsqueeze(g.dy, [axis])
        return padded_along(g, part, [axis], *around), None
    if axis == 0:
        return g.ScatterND(g.zeros(data), as_tuples(g, indices), g.dy, reduction="add"), None
    rank, places = g.rank(data), g.rank(indices)
    order = [axis, *range(axis), *range(axis + 1, rank)]
    dy = g.Transpose(
        g.dy, perm=[*range(axis, axis + places), *range(axis), *range(axis + places, rank + places - 1)]
    )
    rows = zeros_of(g, g.Gather(g.sizes(data), order), data)
    d = g.ScatterND(rows, as_tuples(g, indices), dy, reduction="add")
    return g.Transpose(d, perm=[order.index(i) for i in range(rank)]), None


def _around(g: Gradient, data: Value, indices: Value, axis: int) -> tuple[tuple[int], tuple[int]] | None:
    """Return how many slices are before and after the only one that is taken, where both are known."""
    shape, kind = g.shape(data), indices.type
    size = None if shape is None else shape[axis]
    if not isinstance(size, int) or not isinstance(kind, TensorType) or kind.shape not in {(), (1,)}:
        return None
    index = kind.known[0] if kind.known else None
    if not isinstance(index, int):
        return None
    before = index + size if index < 0 else index
    return ((before,), (size - 1 - before,)) if 0 <= before < size else None


@gather.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    for opset in (1, 11, 13):
        yield Example(opset, x, [1, 0, 1], expect=[x[[1, 0, 1]]])
        columns = np.array([[2], [0]], np.int32)
        yield Example(opset, x, columns, axis=1, expect=[[[[3], [1]], [[6], [4]]]])
    yield Example(11, x, [-1, -3], axis=-1, expect=[[[3, 1], [6, 4]]])
    yield Example(13, x, -1, axis=1, expect=[[3, 6]])
    yield Example(13, [7, 8], 1, expect=[8])
    yield Example(13, ["a", "b"], 1, expect=["b"])
    yield Example(13, np.asfortranarray(x), [[1, 1]], axis=1, expect=[x[:, [[1, 1]]]])
    yield Example(13, x, np.zeros((0, 2), np.int64), expect=[np.zeros((0, 2, 3), np.float32)])
    yield Example(
        13, np.zeros((0, 2), np.float32), np.zeros(0, np.int64), expect=[np.zeros((0, 2), np.float32)]
    )
