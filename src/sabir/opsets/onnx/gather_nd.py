"""GatherND: the parts of a tensor at tuples of indices."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value, product
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.indexing import tuples
from sabir.opsets.families.indexing.indexing import TUPLES
from sabir.opsets.families.indexing.move_gradients import moved_back, numbers_of
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes.extents import shape_of, sizes, squeezed, tuple_numbers
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, CLASSIC, Attribute, Constraint, Example, Input, Operator, Output

gather_nd = Operator(
    "GatherND",
    summary="The part of `data` at each tuple, a last row of `indices`: at i, `data[*indices[i]]`.",
)

T = Constraint("T", CLASSIC)

v11 = gather_nd.first(
    11,
    inputs=[Input("data", T, "A tensor of rank 1 or more.", differentiable=True), TUPLES],
    outputs=[
        Output("output", T, "`indices.shape[:-1]`, then the axes that no tuple indexes.", differentiable=True)
    ],
)
v12 = v11.extend(
    12,
    "`batch_dims` pairs leading dimensions of both inputs.",
    attributes=[Attribute("batch_dims", "int", "The number of leading batch dimensions.", default=0)],
)
v13 = v12.widen(13, T=BFLOAT16)


v11.infer(tuples.infer)
v11.evaluate(tuples.evaluate)


@v11.lower
def lower(data: Expression, indices: Expression, /, *, batch_dims: int = 0) -> Expression:
    """Number the positions of tuples, and take the rows by these numbers."""
    *shape, width = indices.shape
    if not isinstance(width, int) or not batch_dims + width:
        raise NotLowered("tuples of no indices, or of a number that is unknown, are evaluated")
    tuples.check_ranks(data.shape, indices.shape, batch_dims, width)
    if not loops.same_shape(data.shape[:batch_dims], indices.shape[:batch_dims]):
        raise NotLowered("whether the batch dimensions agree is known at run time only")
    places = [loops.count(shape, axis) for axis in range(batch_dims)]
    places += [loops.squeeze(loops.narrow(indices, -1, i, 1), [-1]) for i in range(width)]
    if len(places) == 1:
        return loops.take(data, places[0], 0)
    depth = len(places)
    rows = loops.reshape(data, (product(data.shape[:depth]) or 0, *data.shape[depth:]))
    return loops.take(rows, kernels.numbered(places, data.shape[:depth]), 0)


@v11.downgrade
def gather_rows(b: Builder, data: Value, indices: Value, /) -> Value:
    """Gather parts of `data` by their numbers."""
    places, width = tuple_numbers(b, data, indices)
    rank, axes = len(shape_of("data", data)), range(len(shape_of("indices", indices)) - 1)
    if width == 1:
        return b.Gather(data, places, axis=0)
    found = b.Gather(b.Flatten(data, axis=width), places, axis=0)
    if rank == width:
        return squeezed(b, found, [len(axes)])
    if rank == width + 1:
        return found
    return b.Reshape(found, b.Concat(sizes(b, indices, axes), sizes(b, data, range(width, rank)), axis=0))


@v13.gradient
def gradient(g: Gradient, data: Value, indices: Value, /, *, batch_dims: int) -> tuple[Value, None]:
    if batch_dims == 0:
        return g.ScatterND(g.zeros(data), indices, g.dy, reduction="add"), None
    return moved_back(g, data, g.GatherND(numbers_of(g, data), indices, batch_dims=batch_dims)), None


@gather_nd.examples
def examples() -> Iterator[Example]:
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    for opset in (11, 12, 13):
        yield Example(opset, x, [[0, 1], [1, 0]], expect=[[[2, 3], [4, 5]]])
        yield Example(opset, x, [[[-1, 0, 1]]], expect=[[[5]]])
        yield Example(opset, x, [1], expect=[x[1]])
    yield Example(12, x, [[1], [0]], batch_dims=1, expect=[[[2, 3], [4, 5]]])
    yield Example(13, x, [[[1], [0]], [[0], [-1]]], batch_dims=2, expect=[[[1, 2], [4, 7]]])
    yield Example(11, ["a", "b"], [1], expect=["b"])
    yield Example(13, x, np.zeros((0, 2), np.int64), expect=[np.zeros((0, 2), np.float32)])
