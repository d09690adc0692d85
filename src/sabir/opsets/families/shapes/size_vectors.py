"""Sizes of axes in a graph that is built: numbers where they are known, computed at run time elsewhere."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, TypeAlias

from sabir.elements import INT64
from sabir.ir import TensorType, Value
from sabir.opsets.families.shapes.axes import as_input, known_ints
from sabir.opsets.families.shapes.shapes import axes_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Builder
    from sabir.opsets.typing import ShapedBuilder

Sizes: TypeAlias = "tuple[int, ...] | Value"  # one for each axis; a value is a 1-D tensor of int64

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": int.__floordiv__, "Max": max,
    "Min": min,
}  # fmt: skip


def sizes_of(g: ShapedBuilder, x: Value, first: int = 2) -> Sizes:
    """Return the sizes of the axes of a tensor from `first` on, by default the spatial ones."""
    shape = g.shape(x)
    sizes = () if shape is None else shape[first:]
    known = tuple(d for d in sizes if isinstance(d, int))
    return known if shape is not None and len(known) == len(sizes) else g.Shape(x, start=first)


def combined(g: ShapedBuilder, op: str, a: Sizes, b: Sizes | int) -> Sizes:
    """Return Add, Sub, Mul, Div (of non-negative numbers), Max or Min of sizes."""
    if not isinstance(a, tuple):
        return g.op(op, a, b if isinstance(b, int) else as_value(g, b))
    if isinstance(b, int):
        b = (b,) * len(a)
    if isinstance(b, tuple):
        return tuple(map(_OPERATIONS[op], a, b))
    return g.op(op, as_value(g, a), b)


def as_value(b: Builder, sizes: Sizes) -> Value:
    """Return sizes as a 1-D tensor."""
    return as_input(b, "sizes", sizes) if isinstance(sizes, tuple) else sizes


def padded(g: ShapedBuilder, x: Value, before: Sizes, after: Sizes) -> Value:
    """Add zeros before and after each spatial axis, or remove elements for negative numbers."""
    if isinstance(before, tuple) and isinstance(after, tuple) and not any((*before, *after)):
        return x
    return padded_along(g, x, range(2, g.rank(x)), before, after)


def padded_along(
    b: Builder,
    x: Value,
    axes: Sequence[int] | Value,
    before: Sizes,
    after: Sizes,
    number: Value | None = None,
    **attributes: str,
) -> Value:
    """Emit Pad: add elements before and after some axes, or remove elements for negative numbers.

    Where the rank is known, the pads are those of all axes, and the operand `axes` is absent: onnxruntime
    1.31 ignores it when it moves a Transpose past the Pad, and pads other axes.
    """
    kind = b.type_of(x)
    if not isinstance(kind, TensorType) or kind.rank is None:
        listed = axes if isinstance(axes, Value) else as_input(b, "axes", axes)
        return b.Pad(x, _joined(b, before, after), number, listed, **attributes)
    pads = (_of_all_axes(b, sizes, axes, kind.rank) for sizes in (before, after))
    return b.Pad(x, _joined(b, *pads), number, **attributes)


def _of_all_axes(b: Builder, sizes: Sizes, axes: Sequence[int] | Value, rank: int) -> Sizes:
    """Return sizes of some axes with 0 for each other axis."""
    numbers = known_ints(axes) if isinstance(axes, Value) else axes
    if numbers is None:
        front = b.Mod(b.Cast(axes, to=INT64.number), as_input(b, "rank", [rank]))
        zeros = as_input(b, "zeros", [0] * rank)
        return b.ScatterElements(zeros, front, as_value(b, sizes), axis=0)
    index = {axis: i for i, axis in enumerate(axes_in(numbers, rank))}
    if isinstance(sizes, tuple):
        return tuple(sizes[index[axis]] if axis in index else 0 for axis in range(rank))
    first, count = min(index, default=0), len(index)
    if [*index] != [*range(first, first + count)]:  # in another order, or with others between
        zero = as_input(b, "zero", [0])
        each = {axis: b.Gather(sizes, as_input(b, "index", [i])) for axis, i in index.items()}
        return b.Concat(*(each.get(axis, zero) for axis in range(rank)), axis=0)
    front, back = ([as_input(b, "zeros", [0] * n)] if n else [] for n in (first, rank - first - count))
    return b.Concat(*front, sizes, *back, axis=0) if front or back else sizes


def _joined(b: Builder, before: Sizes, after: Sizes) -> Value:
    if isinstance(before, tuple) and isinstance(after, tuple):
        return as_input(b, "pads", (*before, *after))
    return b.Concat(as_value(b, before), as_value(b, after), axis=0)
