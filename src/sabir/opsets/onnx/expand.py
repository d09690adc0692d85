"""Expand: a tensor repeated to a larger shape."""

from collections.abc import Iterator
from itertools import starmap

import numpy as np

from sabir import loops
from sabir.elements import INT64
from sabir.ir import Builder, Dim, TensorType, Value, known_equal
from sabir.loops import Expression, Lowering
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import as_dim
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import shape_of, sizes, unsqueezed
from sabir.opsets.families.shapes.ranks import as_list
from sabir.opsets.families.shapes.shapes import broadcast
from sabir.opsets.families.shapes.sizes import allotted, sizes_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, CLASSIC, Constraint, Example, Input, Operator, Output, Unconvertible

expand = Operator("Expand", summary="`input` broadcast against `shape`, as numpy does, in both directions.")

T = Constraint("T", CLASSIC)

v8 = expand.first(
    8,
    inputs=[
        Input("input", T, "A tensor of any shape.", differentiable=True),
        Input("shape", "tensor(int64)", "Aligned with `input` at the last dimension.", differentiable=False),
    ],
    outputs=[
        Output("output", T, "The broadcast shape, which may be larger than `shape`.", differentiable=True)
    ],
)
v13 = v8.widen(13, T=BFLOAT16)


@v8.infer
def infer(x: TensorType, shape: TensorType, /) -> TensorType:
    dims = broadcast(x.shape, sizes_in("shape", shape))
    sizes = [d for d in dims or () if isinstance(d, int)]
    return contents.moved(TensorType(x.element, dims), lambda known: np.broadcast_to(known, sizes), x)


@v8.evaluate
def evaluate(x: Array, shape: Array, /) -> Array:
    """Return a view, so that repetition takes no memory."""
    dims = np.broadcast_shapes(x.shape, as_list("shape", shape))
    return np.broadcast_to(x, allotted(dims, x.dtype, x.size))


@v8.lower
def lower(x: Expression, shape: Expression, /, *, call: Lowering) -> Expression:
    kernels.sizes_of(shape, "`shape`")
    return loops.expand(x, call.shape())


@v13.gradient
def gradient(g: Gradient, x: Value, shape: Value, /) -> tuple[Value, None]:
    return g.fit(g.dy, x), None


@v8.downgrade
def tile(b: Builder, x: Value, shape: Value, /) -> Value:
    """Repeat each axis of size 1 as often as `shape` says, the others once."""
    source, length = shape_of("input", x), _length(shape)
    if length is None:
        if source:
            raise Unconvertible("the number of sizes in `shape` is unknown, and Tile needs one for each axis")
        return b.Tile(b.Reshape(x, b.Add(b.Mul(shape, 0), 1)), shape)
    rank = max(len(source), length)
    wide = unsqueezed(b, x, range(rank - len(source)))
    known = shape.type.known if isinstance(shape.type, TensorType) else None
    targets = (*(1,) * (rank - length), *(as_dim(k) for k in known or (None,) * length))
    counts = list(starmap(_count, zip((*((1,) * (rank - len(source))), *source), targets, strict=True)))
    numbers = [c for c in counts if isinstance(c, int)]
    if len(numbers) == rank:
        return b.Tile(wide, as_input(b, "repeats", numbers))
    if length < rank:
        shape = b.Concat(as_input(b, "ones", [1] * (rank - length)), shape, axis=0)
    single = b.Cast(b.Equal(sizes(b, wide, range(rank)), 1), to=INT64.number)
    return b.Tile(wide, b.Add(b.Mul(b.Sub(shape, 1), single), 1))


def _length(shape: Value) -> int | None:
    count = shape.type.size if isinstance(shape.type, TensorType) else None
    return count if isinstance(count, int) and count <= contents.MOST else None


def _count(dim: Dim, target: Dim) -> Dim:
    """Return how often a dimension is repeated; None where it is unknown."""
    if dim == 1:
        return target
    return 1 if target == 1 or known_equal(dim, 1) is False or known_equal(dim, target) else None


@expand.examples
def examples() -> Iterator[Example]:
    x = np.array([[1], [2], [3]], np.float32)
    wide = [[[1, 1], [2, 2], [3, 3]]] * 2
    for opset in (8, 13):
        yield Example(opset, x, [2, 1, 2], expect=[wide])
        yield Example(opset, x, [1], expect=[x])
    yield Example(8, "a", [2], expect=[["a", "a"]])
    yield Example(8, 5, [], expect=[5])
    yield Example(8, x, [3, 0], expect=[np.zeros((3, 0), np.float32)])
    yield Example(8, [4, 5], [2, 2], expect=[[[4, 5], [4, 5]]])
