"""Tile: copies of a tensor side by side."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, is_nonnegative, mul
from sabir.loops import Expression, Lowering, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import as_dim
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import as_number, check_one, check_shape
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.families.shapes.sizes import allotted, sizes_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOATS,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

tile = Operator("Tile", summary="`repeats[i]` copies of `input` along each axis i: numpy's `tile`.")

T = Constraint("T", FLOATS)
T1 = Constraint("T1", tensors("int64"))

v1 = tile.first(
    1,
    inputs=[
        Input("input", T, "A tensor of any shape.", differentiable=True),
        Input("tiles", T, "One number: the number of copies."),
        Input("axis", T, "One number: the axis to copy along."),
    ],
    outputs=[Output("output", T, "The copies along `axis`.", differentiable=True)],
)
v6 = v1.evolve(
    6,
    "`repeats` for every axis replaces `tiles` along one; every element type is admitted.",
    inputs=[
        Input("input", T, "A tensor of any shape.", differentiable=True),
        Input("repeats", T1, "The number of copies along each axis.", differentiable=False),
    ],
    outputs=[Output("output", T, "Each dimension `repeats[i]` times that of `input`.", differentiable=True)],
    widen={"T": CLASSIC},
)
v13 = v6.widen(13, T=BFLOAT16)


@v1.infer
def infer_along_one(x: TensorType, tiles: TensorType, axis: TensorType, /) -> TensorType:
    check_one("tiles", tiles)
    check_one("axis", axis)
    if x.shape is None:
        return TensorType(x.element)
    count, along = (as_dim(t.known[0]) if t.known else None for t in (tiles, axis))
    if not isinstance(along, int):
        return TensorType(x.element, (None,) * len(x.shape))
    along = axis_in(along, len(x.shape))
    return x.with_known(None).with_shape(*(mul(d, count) if i == along else d for i, d in enumerate(x.shape)))


@v6.infer
def infer(x: TensorType, repeats: TensorType, /) -> TensorType:
    counts = sizes_in("repeats", repeats)
    if x.shape is None or counts is None:
        shape = x.shape if counts is None else counts
        return TensorType(x.element, None if shape is None else (None,) * len(shape))
    if len(counts) != len(x.shape):
        raise InferenceError(f"`repeats` has {len(counts)} numbers for a tensor of rank {len(x.shape)}")
    kind = TensorType(x.element, tuple(map(mul, x.shape, counts)))
    numbers = [c for c in counts if isinstance(c, int)]
    if len(numbers) < len(counts):
        return kind
    return contents.moved(kind, lambda known: _tiled(known, numbers), x)


@v1.evaluate
def evaluate_along_one(x: Array, tiles: Array, axis: Array, /) -> Array:
    repeats = [1] * x.ndim
    repeats[axis_in(int(as_number("axis", axis)), x.ndim)] = int(as_number("tiles", tiles))
    return _tiled(x, repeats)


@v6.evaluate
def evaluate(x: Array, repeats: Array, /) -> Array:
    check_shape("repeats", repeats, x.ndim)
    return _tiled(x, repeats.tolist())


def _tiled(x: Array, repeats: list[int]) -> Array:
    """Copy once, whatever the number of axes."""
    if any(r < 0 for r in repeats):
        raise ValueError(f"`repeats` {repeats} cannot be negative")
    whole = allotted([r * d for r, d in zip(repeats, x.shape, strict=True)], x.dtype, x.size)
    paired = [n for pair in zip(repeats, x.shape, strict=True) for n in pair]
    spread = np.broadcast_to(x.reshape([n for d in x.shape for n in (1, d)]), paired)
    return spread.reshape(whole)


@v1.lower
def lower_along_one(x: Expression, tiles: Expression, axis: Expression, /, *, call: Lowering) -> Expression:
    along = axis_in(int(kernels.number_of(axis, "`axis`")), x.rank)
    count = int(kernels.number_of(tiles, "`tiles`"))
    if count < 0:
        raise NotLowered("`tiles` is no count")
    before, after = x.shape[:along], x.shape[along:]
    spread = loops.expand(loops.reshape(x, (*before, 1, *after)), (*before, count, *after))
    return loops.reshape(spread, call.shape())


@v6.lower
def lower(x: Expression, repeats: Expression, /, *, call: Lowering) -> Expression:
    counts = kernels.sizes_of(repeats, "`repeats`")
    if not all(map(is_nonnegative, counts)):
        raise NotLowered("whether `repeats` are counts is known at run time only")
    spread = loops.reshape(x, [n for d in x.shape for n in (1, d)])
    paired = [n for pair in zip(counts, x.shape, strict=True) for n in pair]
    return loops.reshape(loops.expand(spread, paired), call.shape())


@v6.upgrade
def counts_for_every_axis(b: Builder, x: Value, tiles: Value, axis: Value, /) -> Value:
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    count, along = (
        as_dim(v.type.known[0]) if isinstance(v.type, TensorType) and v.type.known else None
        for v in (tiles, axis)
    )
    if rank is None or not isinstance(count, int) or not isinstance(along, int):
        raise Unconvertible("`tiles`, `axis` and the rank of `input` must be known for Tile:6")
    repeats = [1] * rank
    repeats[axis_in(along, rank)] = count
    return b.Tile(x, as_input(b, "repeats", repeats))


@v6.downgrade
def one_axis_after_another(b: Builder, x: Value, repeats: Value, /) -> Value:
    counts = contents.ints(repeats.type.known) if isinstance(repeats.type, TensorType) else None
    if counts is None or not isinstance(x.type, TensorType) or not x.type.element.is_float:
        raise Unconvertible("Tile:1 takes floating-point tensors and copies along one known axis")
    dtype = x.type.element.dtype
    for axis, count in enumerate(counts):
        if count != 1:
            x = b.Tile(
                x,
                b.initializer("tiles", np.array(count, dtype)),
                b.initializer("axis", np.array(axis, dtype)),
            )
    return b.Identity(x) if all(c == 1 for c in counts) else x


@v13.gradient
def gradient(g: Gradient, x: Value, repeats: Value, /) -> tuple[Value, None]:
    """The copies along each axis, on an axis of their own, are added up."""
    rank = g.rank(x)
    if rank == 0:
        return g.dy, None
    split = g.Concat(g.Unsqueeze(repeats, [1]), g.Unsqueeze(g.sizes(x), [1]), axis=1)
    copies = g.Reshape(g.dy, g.Reshape(split, [-1]), allowzero=1)
    return g.ReduceSum(copies, [*range(0, 2 * rank, 2)], keepdims=0), None


@tile.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[1, 2], [3, 4]], f)
    wide = [[1, 2, 1, 2], [3, 4, 3, 4]]
    yield Example(1, x, f(2), f(1), expect=[wide])
    yield Example(1, x, [2], [0], expect=[[[1, 2], [3, 4]] * 2])
    for opset in (6, 13):
        yield Example(opset, x, [1, 2], expect=[wide])
        yield Example(opset, x, [2, 2], expect=[[[1, 2, 1, 2], [3, 4, 3, 4]] * 2])
        yield Example(opset, x, [1, 1], expect=[x])
    yield Example(13, [5, 6], [2], expect=[[5, 6, 5, 6]])
    yield Example(13, "a", [], expect=["a"])
    yield Example(13, x, [0, 3], expect=[np.zeros((0, 6), f)])
