"""The shape of a tensor that ConstantFill or GivenTensorFill fills: of an attribute, or of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.schema import Attribute

if TYPE_CHECKING:
    from sabir.ir import Builder, Dim, TensorType, Value
    from sabir.opsets.typing import Array, Ints

SHAPE_ATTRIBUTES = (
    Attribute("shape", "ints", "The shape where there is no input."),
    Attribute("input_as_shape", "int", "1: the contents of the input are the shape."),
    Attribute("extra_shape", "ints", "Dimensions after those of the input."),
)


def filled_shape(
    like: TensorType | None, shape: Ints, input_as_shape: int | None, extra_shape: Ints
) -> tuple[Dim, ...] | None:
    """Return the shape as far as it is known; raises InferenceError where nothing states it."""
    if like is None:
        return _stated(shape)
    if not input_as_shape:
        return None if like.shape is None else (*like.shape, *(extra_shape or ()))
    check_rank("the input", like, 1)
    sizes = _contents(like)
    if any(isinstance(size, int) and size < 0 for size in sizes or ()):
        raise InferenceError(f"a shape of {list(sizes or ())} has a size below 0")
    return None if sizes is None else (*sizes, *(extra_shape or ()))


def _stated(shape: Ints) -> tuple[int, ...]:
    if shape is None:
        raise InferenceError("without an input, the attribute `shape` must state the shape")
    return tuple(shape)


def _contents(like: TensorType) -> tuple[Dim, ...] | None:
    """Return the elements of a vector as sizes, None for those that are unknown."""
    if like.known is not None:
        return tuple(int(n) if isinstance(n, (int, float)) else None for n in like.known)
    return (None,) * like.size if isinstance(like.size, int) else None


def filled_sizes(
    like: Array | None, shape: Ints, input_as_shape: int | None, extra_shape: Ints
) -> tuple[int, ...]:
    """Return the shape; raises InferenceError where nothing states it."""
    if like is None:
        return _stated(shape)
    if input_as_shape:
        check_rank("the input", like, 1)
    return (*(map(int, like.tolist()) if input_as_shape else like.shape), *(extra_shape or ()))


def emitted_sizes(
    b: Builder, like: Value | None, shape: Ints, input_as_shape: int | None, extra_shape: Ints
) -> Value:
    """Emit the shape as a vector."""
    if like is None:
        return as_input(b, "shape", _stated(shape))
    sizes = typed(b, like, INT64) if input_as_shape else b.Shape(like)
    return b.Concat(sizes, as_input(b, "extra", extra_shape), axis=0) if extra_shape else sizes
