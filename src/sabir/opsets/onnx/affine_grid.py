"""AffineGrid: the coordinates to which an affine map moves the pixels of an image, for GridSample."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import FLOAT, ElementType
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.resampling.resampling import ALIGN_CORNERS
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import as_list, check_shape
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.sizes import allotted, sizes_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

affine_grid = Operator(
    "AffineGrid",
    summary="For each pixel p of an image, in coordinates from -1 to 1, the coordinates `theta @ [p, 1]`.",
)

T1 = Constraint("T1", FLOATS, BFLOAT16)
T2 = Constraint("T2", tensors("int64"))

v20 = affine_grid.first(
    20,
    inputs=[
        Input(
            "theta",
            T1,
            "Affine maps, [N, 2, 3], or [N, 3, 4] for volumes; x comes first, then y.",
            differentiable=False,
        ),
        Input("size", T2, "The sizes of the image: [N, C, H, W] or [N, C, D, H, W].", differentiable=False),
    ],
    outputs=[Output("grid", T1, "The coordinates, [N, H, W, 2] or [N, D, H, W, 3].", differentiable=True)],
    attributes=[ALIGN_CORNERS],
)

_DIMENSIONS = (2, 3)
_BATCH_AND_DEPTH = 2
_TO_THE_END = 2**63 - 1


@v20.infer
def infer(theta: TensorType, size: TensorType, /, *, align_corners: int) -> TensorType:
    sizes = sizes_in("size", size)
    if sizes is None:
        rank = _dimensions(theta)
        return TensorType(theta.element, None if rank is None else (*(None,) * (rank + 1), rank))
    rank = len(sizes) - _BATCH_AND_DEPTH
    if rank not in _DIMENSIONS or _dimensions(theta) not in {None, rank}:
        raise InferenceError(f"`size` has {len(sizes)} numbers, and `theta` is {theta}")
    check_shape("theta", theta, sizes[0], rank, rank + 1)
    batch = sizes[0] if theta.shape is None else same_dim([theta.shape[0], sizes[0]], "the batch of `size`")
    return TensorType(theta.element, (batch, *sizes[_BATCH_AND_DEPTH:], rank))


def _dimensions(theta: TensorType) -> int | None:
    """Return the number of spatial dimensions of the images."""
    if theta.shape is None:
        return None
    if len(theta.shape) != 3:  # ruff: ignore[magic-value-comparison]  a batch of matrices
        raise InferenceError(f"`theta` must be of rank 3, and has rank {len(theta.shape)}")
    rows, columns = theta.shape[1:]
    known: Dim = rows if isinstance(rows, int) else columns - 1 if isinstance(columns, int) else None
    if known is not None and known not in _DIMENSIONS:
        raise InferenceError(f"`theta` must have the shape [N, 2, 3] or [N, 3, 4], and is {theta}")
    return known if isinstance(known, int) else None


@v20.evaluate
def evaluate(theta: Array, size: Array, /, *, align_corners: int) -> Array:
    sizes = as_list("size", size)
    rank = len(sizes) - _BATCH_AND_DEPTH
    if rank not in _DIMENSIONS:
        raise InferenceError(f"`size` has {len(sizes)} numbers, and must have 4 or 5")
    check_shape("theta", theta, sizes[0], rank, rank + 1)
    allotted([sizes[0], *sizes[_BATCH_AND_DEPTH:], rank], np.dtype(np.float64))
    maps = widened(theta).reshape(sizes[0], *(1,) * rank, rank, rank + 1)
    grid = np.broadcast_to(maps[..., rank], (sizes[0], *sizes[_BATCH_AND_DEPTH:], rank))
    for axis, count in enumerate(sizes[_BATCH_AND_DEPTH:]):
        along = [-1 if i == axis else 1 for i in range(rank)]
        coordinates = _coordinates(count, align_corners).astype(maps.dtype).reshape(*along, 1)
        grid = np.asarray(grid + maps[..., rank - 1 - axis] * coordinates)
    return grid.astype(theta.dtype, copy=False)


def _coordinates(count: int, align_corners: int) -> Array:
    """Return the coordinates of the pixels of one axis; with aligned corners a single pixel is at -1."""
    index = np.arange(count, dtype=np.float64)
    return index * (2 / max(count - 1, 1)) - 1 if align_corners else (2 * index + 1) / max(count, 1) - 1


@v20.lower
def lower(theta: Expression, size: Expression, /, *, align_corners: int) -> Expression:
    batch, _, *counts = kernels.sizes_of(size, "`size`")
    rank = len(counts)
    if not loops.same_shape(theta.shape, (batch, rank, rank + 1)):
        raise NotLowered("whether `theta` has a map for each item of the batch is known at run time only")
    grid = _column(theta, rank, rank)
    for axis, count in enumerate(counts):
        index = loops.cast(
            loops.count([count if i == axis + 1 else 1 for i in range(rank + 2)], axis + 1), "double"
        )
        if align_corners:
            last = loops.apply("max", loops.sized("double", count - 1), 1)
            index = loops.apply("sub", loops.apply("mul", index, loops.apply("div", 2, last)), 1)
        else:
            whole = loops.apply("max", loops.sized("double", count), 1)
            odd = loops.apply("add", loops.apply("mul", index, 2), 1)
            index = loops.apply("sub", loops.apply("div", odd, whole), 1)
        term = loops.apply("mul", _column(theta, rank - 1 - axis, rank), loops.cast(index, theta.element))
        grid = loops.apply("add", grid, term)
    return loops.expand(grid, (batch, *counts, rank))


def _column(theta: Expression, number: int, rank: int) -> Expression:
    """Return a column of maps (N, r, r + 1) as (N, 1, ..., r)."""
    return loops.reshape(loops.narrow(theta, 2, number, 1), (theta.shape[0], *(1,) * rank, rank))


@v20.body
def body(b: Builder, theta: Value, size: Value, /, *, align_corners: int) -> Value:
    """Sum the terms of all coordinates; 16-bit floats are computed in float32."""
    rank = _dimensions(theta.type) if isinstance(theta.type, TensorType) else None
    if rank is None or not isinstance(theta.type, TensorType):
        raise Unconvertible("the shape of `theta` is unknown, and so the number of dimensions")
    element = theta.type.element
    wide = element if element.bits >= FLOAT.bits else FLOAT
    maps = b.Cast(theta, to=wide.number)
    spread = as_input(b, "spread", range(1, rank + 1))

    def column(number: int) -> Value:
        return b.Unsqueeze(b.Gather(maps, b.initializer("column", np.array(number)), axis=2), spread)

    grid = column(rank)
    for axis in range(rank):
        count = b.Gather(size, b.initializer("axis", np.array(_BATCH_AND_DEPTH + axis)), axis=0)
        others = as_input(b, "others", [i for i in range(rank + 2) if i != axis + 1])
        coordinates = b.Unsqueeze(_build_coordinates(b, count, align_corners, wide), others)
        grid = b.Add(grid, b.Mul(column(rank - 1 - axis), coordinates))
    return b.Cast(grid, to=element.number)


def _build_coordinates(b: Builder, count: Value, align_corners: int, kind: ElementType) -> Value:
    zero, one = (b.initializer("number", np.array(n)) for n in (0, 1))
    number = kind.number
    index = b.Cast(b.Range(zero, count, one), to=number)
    ones, two = (b.initializer("number", np.array(n, kind.dtype)) for n in (1, 2))
    if align_corners:
        last = b.Cast(b.Max(b.Sub(count, one), one), to=number)
        return b.Sub(b.Mul(index, b.Div(two, last)), ones)
    return b.Sub(b.Div(b.Add(b.Mul(two, index), ones), b.Cast(count, to=number)), ones)


@v20.gradient
def gradient(g: Gradient, theta: Value, size: Value, /, *, align_corners: int) -> tuple[Value, None]:
    """The products with the coordinates of the pixels, which the identity map returns."""
    rank = _dimensions(theta.type) if isinstance(theta.type, TensorType) else None
    rank = g.rank(g.dy) - _BATCH_AND_DEPTH if rank is None else rank
    kind = element_of(theta)
    still = np.eye(rank, rank + 1, dtype=kind.dtype)[None]
    one = g.Concat([1], g.Slice(size, [1], [_TO_THE_END], [0]), axis=0)
    pixels = g.Reshape(g.AffineGrid(still, one, align_corners=align_corners), [-1, rank])
    moved = g.Reshape(g.dy, [0, -1, rank])
    products = g.MatMul(g.Transpose(moved, perm=[0, 2, 1]), pixels)
    return g.Concat(products, g.Unsqueeze(g.ReduceSum(moved, [1], keepdims=0), [2]), axis=2), None


@affine_grid.examples
def examples() -> Iterator[Example]:
    f = np.float32
    still = np.array([[[1, 0, 0], [0, 1, 0]]], f)
    moved = np.array([[[0, -2, 0.5], [1, 0, 0]]], f)  # x from y, and y from x
    size = [1, 1, 2, 2]
    edges = [[[-0.5, -0.5], [0.5, -0.5]], [[-0.5, 0.5], [0.5, 0.5]]]
    turned = [[[1.5, -0.5], [1.5, 0.5]], [[-0.5, -0.5], [-0.5, 0.5]]]
    corners = [[[-1, -1], [1, -1]], [[-1, 1], [1, 1]]]
    for kind in (f, np.float16, np.float64, ml_dtypes.bfloat16):
        yield Example(20, still.astype(kind), size, expect=[[edges]])
        yield Example(20, moved.astype(kind), size, expect=[[turned]])
        yield Example(20, still.astype(kind), size, align_corners=1, expect=[[corners]])
    solid = [[[1, 0, 0, 0.25], [0, 1, 0, 0], [0, 0, 2, 0]]]
    moved_cube = [[[[x + 0.25, y, z] for x in (-0.75, -0.25, 0.25, 0.75)] for y in (0,)] for z in (-1, 1)]
    yield Example(20, solid, [1, 5, 2, 1, 4], expect=[[moved_cube]])
    yield Example(20, still, [1, 1, 1, 2], align_corners=1, expect=[[[[[-1, -1], [1, -1]]]]])
    yield Example(20, still[:0], [0, 1, 1, 2], expect=[np.zeros((0, 1, 2, 2), f)])
