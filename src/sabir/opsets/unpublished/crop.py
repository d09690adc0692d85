"""Crop: images without their borders."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, Dim, TensorType, Value, sub
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.building.calls import has_attribute
from sabir.opsets.families.building.removals import removed
from sabir.opsets.families.indexing.indexing import TO_THE_END
from sabir.opsets.families.shapes.axes import as_input, ints
from sabir.opsets.families.shapes.ranks import check_rank, hold
from sabir.opsets.typing import Array, Ints
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Operator, Output, at_least

crop = Operator("Crop", summary="Images without borders, or the part of a size at the upper left borders.")

T = Constraint("T", FLOATS)
_BORDER = "The elements to remove: left, top, right, bottom."
_SCALE = Attribute("scale", "ints", "The height and width that are left, whatever right and bottom are.",
                   values=at_least(0))  # fmt: skip

v1 = crop.first(
    1,
    inputs=[Input("input", T, "(N, C, H, W).")],
    outputs=[Output("output", T, "The parts, (N, C, height, width).")],
    attributes=[Attribute("border", "ints", _BORDER, values=at_least(0)), _SCALE],
    unpublished=True,
)
v10 = removed(
    v1,
    "Slice computes it.",
    attributes=[Attribute("border", "ints", _BORDER, required=True, values=at_least(0)), _SCALE],
)


def _corner(border: Ints, scale: Ints) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom; raises InferenceError for other numbers than four of two."""
    if border is None or len(border) != 4:  # ruff: ignore[magic-value-comparison]  the sides of an image
        raise InferenceError(f"`border` must have four numbers, and is {border and list(border)}")
    if scale is not None and len(scale) != 2:  # ruff: ignore[magic-value-comparison]  height and width
        raise InferenceError(f"`scale` must be a height and a width, and is {list(scale)}")
    left, top, right, bottom = border
    return left, top, right, bottom


@v1.infer
def infer(x: TensorType, /, *, border: Ints, scale: Ints) -> TensorType:
    left, top, right, bottom = _corner(border, scale)
    check_rank("input", x, 4)
    if x.shape is None:
        return TensorType(x.element)
    *rest, height, width = x.shape
    if scale is None:
        sizes = _left(height, top + bottom), _left(width, left + right)
    else:
        for size, needed in ((height, top + scale[0]), (width, left + scale[1])):
            _left(size, needed)
        sizes = tuple(scale)
    return TensorType(x.element, (*rest, *sizes))


def _left(size: Dim, removed: int) -> Dim:
    left = sub(size, removed)
    if isinstance(left, int) and left < 0:
        raise InferenceError(f"{removed} elements are more than a side of {size} has")
    return left


@v1.evaluate
def evaluate(x: Array, /, *, border: Ints, scale: Ints) -> Array:
    hold(infer, x, border=border, scale=scale)
    left, top, right, bottom = _corner(border, scale)
    height, width = scale or (x.shape[2] - top - bottom, x.shape[3] - left - right)
    return x[:, :, top : top + height, left : left + width]


@v1.lower
def lower(x: Expression, /, *, border: Ints, scale: Ints) -> Expression:
    left, top, right, bottom = _corner(border, scale)
    counts: Sequence[loops.Size] = scale or (x.shape[2] - top - bottom, x.shape[3] - left - right)
    for size, first, count in zip(x.shape[2:], (top, left), counts, strict=True):
        if not loops.at_least(size, first + count) or not loops.at_least(count, 0):
            raise NotLowered("whether the images are larger than their borders is known at run time only")
    return loops.narrow(loops.narrow(x, 2, top, counts[0]), 3, left, counts[1])


@v10.upgrade
@v1.body
def slice_out(b: Builder, x: Value, /, *, border: Ints, scale: Ints) -> Value:
    left, top, right, bottom = _corner(border, scale)
    if scale is None:
        ends = [-side if side else TO_THE_END for side in (bottom, right)]
    else:
        ends = [top + scale[0], left + scale[1]]
    if has_attribute(b, "Slice", "starts"):
        return b.Slice(
            x, starts=ints("starts", (top, left)), ends=ints("ends", ends), axes=ints("axes", (2, 3))
        )
    starts, stops = as_input(b, "starts", (top, left)), as_input(b, "ends", ends)
    return b.Slice(x, starts, stops, as_input(b, "axes", (2, 3)))


@crop.examples
def examples() -> Iterator[Example]:
    x = np.arange(24).reshape(1, 2, 3, 4)
    for kind in (np.float32, np.float16, np.float64):
        image = x.astype(kind)
        for opset in (1, 9):
            yield Example(opset, image, border=[1, 0, 1, 2], expect=[image[:, :, :1, 1:3]])
            yield Example(opset, image, border=[1, 1, 0, 0], scale=[2, 2], expect=[image[:, :, 1:, 1:3]])
        yield Example(9, image, border=[0, 0, 0, 0], expect=[image])
    yield Example(9, x.astype(np.float32), border=[2, 3, 2, 0], expect=[np.zeros((1, 2, 0, 0), np.float32)])
    yield Example(
        9,
        x.astype(np.float32),
        border=[0, 1, 9, 9],
        scale=[0, 1],
        expect=[np.zeros((1, 2, 0, 1), np.float32)],
    )
