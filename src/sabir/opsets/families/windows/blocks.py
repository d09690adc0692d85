"""Blocks of pixels of an image, moved between space and depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import TensorType, floor_div, mul
from sabir.loops import NotLowered
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.schema import CLASSIC, Attribute, Constraint, Input, Output, at_least, one_of

if TYPE_CHECKING:
    from sabir.ir import Builder, Dim, Value
    from sabir.loops import Expression, Size, Sizes
    from sabir.opsets.typing import Array
    from sabir.schema import Operator, Version

_IMAGE = 4
BLOCKSIZE = Attribute(
    "blocksize", "int", "The height and the width of a block.", required=True, values=at_least(1)
)
MODE = Attribute(
    "mode",
    "string",
    "DCR: the position in the block is the outer part of the depth; CRD: the inner part.",
    default="DCR",
    values=one_of("DCR", "CRD"),
)


def declare_first(operator: Operator, result: str) -> Version:
    """Declare the first version of a move between space and depth; `result` is the shape of the output."""
    of = Constraint("T", CLASSIC)
    return operator.first(
        1,
        inputs=[Input("input", of, "Images of the shape [N, C, H, W].", differentiable=True)],
        outputs=[Output("output", of, f"Images of the shape {result}.", differentiable=True)],
        attributes=[BLOCKSIZE],
    )


# The order of the six axes of the split image, by mode: the block before the remaining depth (DCR), or after
# it (CRD).
_TO_SPACE = {"DCR": (0, 3, 4, 1, 5, 2), "CRD": (0, 1, 4, 2, 5, 3)}
_TO_DEPTH = {"DCR": (0, 3, 5, 1, 2, 4), "CRD": (0, 1, 3, 5, 2, 4)}


def _divided(size: Dim, block: int, what: str) -> Dim:
    _check_divisible(size, block, what)
    return floor_div(size, block)


def _check_divisible(size: Dim, block: int, what: str) -> None:
    if isinstance(size, int) and size % block:
        raise InferenceError(f"a {what} of {size} is not divisible by {block}")


def _image(x: TensorType) -> tuple[Dim, ...] | None:
    check_rank("input", x, _IMAGE)
    return x.shape


def infer_to_space(x: TensorType, block: int, mode: str) -> TensorType:
    """Return the type of DepthToSpace."""
    order = _TO_SPACE[mode]
    dims = _image(x)
    if dims is None:
        return TensorType(x.element, (None,) * _IMAGE)
    n, c, h, w = dims
    kind = TensorType(x.element, (n, _divided(c, block * block, "depth"), mul(h, block), mul(w, block)))
    return contents.moved(kind, lambda known: _to_space(known, block, mode, order), x)


def infer_to_depth(x: TensorType, block: int, mode: str) -> TensorType:
    """Return the type of SpaceToDepth."""
    order = _TO_DEPTH[mode]
    dims = _image(x)
    if dims is None:
        return TensorType(x.element, (None,) * _IMAGE)
    n, c, h, w = dims
    kind = TensorType(
        x.element, (n, mul(c, block * block), _divided(h, block, "height"), _divided(w, block, "width"))
    )
    return contents.moved(kind, lambda known: _to_depth(known, block, order), x)


def to_space(x: Array, block: int, mode: str) -> Array:
    """Return an image with each pixel's depth as a block of pixels."""
    return _to_space(x, block, mode, _TO_SPACE[mode])


def _to_space(x: Array, block: int, mode: str, order: tuple[int, ...]) -> Array:
    check_rank("input", x, _IMAGE)
    n, c, h, w = x.shape
    _check_divisible(c, block * block, "depth")
    left = c // (block * block)
    split = (n, block, block, left, h, w) if mode == "DCR" else (n, left, block, block, h, w)
    return x.reshape(split).transpose(order).reshape(n, left, h * block, w * block)


def to_depth(x: Array, block: int, mode: str) -> Array:
    """Return an image with each block of pixels in the depth of one pixel."""
    return _to_depth(x, block, _TO_DEPTH[mode])


def _to_depth(x: Array, block: int, order: tuple[int, ...]) -> Array:
    check_rank("input", x, _IMAGE)
    n, c, h, w = x.shape
    _check_divisible(h, block, "height")
    _check_divisible(w, block, "width")
    split = x.reshape(n, c, h // block, block, w // block, block)
    return split.transpose(order).reshape(n, c * block * block, h // block, w // block)


# ---------------------------------------------------------------- kernels


def lower_to_space(x: Expression, block: int, mode: str, wanted: Sizes) -> Expression:
    """Return DepthToSpace as a tensor expression of the shape `wanted`."""
    n, depth, h, w = x.shape
    _assume_divisible(depth, block * block)
    left = wanted[1]
    split = (n, block, block, left, h, w) if mode == "DCR" else (n, left, block, block, h, w)
    return loops.reshape(loops.permute(loops.reshape(x, split), _TO_SPACE[mode]), wanted)


def lower_to_depth(x: Expression, block: int, mode: str, wanted: Sizes) -> Expression:
    """Return SpaceToDepth as a tensor expression of the shape `wanted`."""
    n, c, height, width = x.shape
    _assume_divisible(height, block)
    _assume_divisible(width, block)
    _, _, rows, columns = wanted
    split = loops.reshape(x, (n, c, rows, block, columns, block))
    return loops.reshape(loops.permute(split, _TO_DEPTH[mode]), wanted)


def _assume_divisible(size: Size, block: int) -> None:
    """Raise NotLowered for a size that may not be divisible; a tensor without elements hides it."""
    if loops.divided(size, block) is None:
        raise NotLowered(f"whether {size} is divisible by {block} is known at run time only")


# ---------------------------------------------------------------- bodies


def build_to_space(b: Builder, x: Value, block: int, mode: str) -> Value:
    """Build DepthToSpace as a transposition of the split image."""
    order = _TO_SPACE[mode]
    one, area = (b.initializer("block", np.array([s], np.int64)) for s in (block, block * block))
    n, c, h, w = _sizes(b, x)
    left = b.Div(c, area)
    split = (n, one, one, left, h, w) if mode == "DCR" else (n, left, one, one, h, w)
    return _built(b, x, split, order, (n, left, b.Mul(h, one), b.Mul(w, one)))


def build_to_depth(b: Builder, x: Value, block: int, mode: str) -> Value:
    """Build SpaceToDepth as a transposition of the split image."""
    order = _TO_DEPTH[mode]
    one, area = (b.initializer("block", np.array([s], np.int64)) for s in (block, block * block))
    n, c, h, w = _sizes(b, x)
    rows, columns = b.Div(h, one), b.Div(w, one)
    return _built(b, x, (n, c, rows, one, columns, one), order, (n, b.Mul(c, area), rows, columns))


def _sizes(b: Builder, x: Value) -> tuple[Value, ...]:
    return tuple(b.Shape(x, start=i, end=i + 1) for i in range(_IMAGE))


def _built(
    b: Builder, x: Value, split: tuple[Value, ...], order: tuple[int, ...], whole: tuple[Value, ...]
) -> Value:
    """A 0 in these shapes is a size, since a batch may be empty."""
    parts = b.Reshape(x, b.Concat(*split, axis=0), allowzero=1)
    return b.Reshape(b.Transpose(parts, perm=list(order)), b.Concat(*whole, axis=0), allowzero=1)
