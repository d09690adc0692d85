"""Sizes of axes in the graph of a gradient: numbers where they are known, computed at run time elsewhere."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, TypeAlias

from sabir.opsets.families.shapes.axes import as_input

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Value
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


def as_value(g: ShapedBuilder, sizes: Sizes) -> Value:
    """Return sizes as a 1-D tensor."""
    return as_input(g, "sizes", sizes) if isinstance(sizes, tuple) else sizes


def padded(g: ShapedBuilder, x: Value, before: Sizes, after: Sizes, *, first: int = 2) -> Value:
    """Add zeros before and after each axis from `first` on, or remove elements for negative numbers."""
    if isinstance(before, tuple) and isinstance(after, tuple) and not any((*before, *after)):
        return x
    axes = [*range(first, g.rank(x))]
    return g.Pad(x, g.Concat(as_value(g, before), as_value(g, after), axis=0), None, axes)
