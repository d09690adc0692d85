"""Spectra of real signals of several axes, of which the last has only its first frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.shapes.axes import as_input
from sabir.schema import FLOATS, Attribute, Constraint, Unconvertible, one_of

if TYPE_CHECKING:
    from typing import Any

    from sabir.ir import Builder, Value
    from sabir.loops import Expression

T = Constraint("T", FLOATS)
ATTRIBUTES = (
    Attribute("normalized", "int", "0: only the inverse is divided by n.", default=0, values=one_of(0)),
    Attribute("onesided", "int", "1: the first n // 2 + 1 frequencies.", default=1, values=one_of(1)),
)


def check_dimensions(count: int, rank: int) -> None:
    """Raise InferenceError for signals of more axes than a tensor has."""
    if count > rank:
        raise InferenceError(f"signals of {count} axes do not fit a tensor of rank {rank}")


def rank_of(x: Value) -> int:
    """Return the rank of a tensor; raises Unconvertible where it is unknown."""
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    if rank is None:
        raise Unconvertible("the rank is unknown, and axes are counted from the front")
    return rank


def last_axis(b: Builder) -> Value:
    """Emit the list of the last axis."""
    return as_input(b, "last", [-1])


def as_parts(x: Expression) -> Expression:
    """Return real numbers as complex numbers of one part."""
    return loops.reshape(x, (*x.shape, 1))


def without_parts(x: Expression) -> Expression:
    """Return complex numbers of one part as real numbers."""
    return loops.squeeze(x, [x.rank - 1])


def transformed(b: Builder, x: Value, axis: int, rank: int, **attributes: Any) -> Value:
    """Emit DFT along an axis of `x`, [..., parts]; the axis becomes the default one, the second of three."""
    order = [*(a for a in range(rank - 1) if a != axis), axis, rank - 1]
    moved = b.Transpose(x, perm=order)
    rows = b.ReduceProd(b.Shape(moved, start=0, end=-2), as_input(b, "axes", [0]), keepdims=1)
    flat = b.Reshape(moved, b.Concat(rows, b.Shape(moved, start=-2), axis=0), allowzero=1)
    y = b.DFT(flat, **attributes)
    sizes = b.Concat(b.Shape(moved, start=0, end=-2), b.Shape(y, start=1), axis=0)
    return b.Transpose(b.Reshape(y, sizes, allowzero=1), perm=[order.index(a) for a in range(rank)])
