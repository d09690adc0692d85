"""Sizes, axes and indices in the graphs of adapters: constants where they are known, computed elsewhere."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import INT64
from sabir.ir import Tensor, TensorType
from sabir.opsets.families.building.calls import has_attribute
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input, ints
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.ir import Builder, Shape, Value

MOST = 1 << 20  # elements of a constant that an adapter adds, so that a file cannot ask for more
_COUNTS, _RANGE = 10, 11  # the first opsets in which an adapter may use NonZero, and Range


def shape_of(name: str, x: Value) -> Shape:
    """Return the shape of an operand; raises Unconvertible where its rank is unknown."""
    shape = x.type.shape if isinstance(x.type, TensorType) else None
    if shape is None:
        raise Unconvertible(f"the rank of `{name}` is unknown, and older operators need it")
    return shape


def static_shape(name: str, x: Value) -> tuple[int, ...]:
    """Return the shape of an operand as numbers; raises Unconvertible where one is unknown, or for too many.

    A caller adds constants with as many elements.
    """
    dims = shape_of(name, x)
    sizes = tuple(d for d in dims if isinstance(d, int))
    if len(sizes) < len(dims):
        raise Unconvertible(f"the shape of `{name}` is unknown, and older operators need it in the model")
    count = x.type.size if isinstance(x.type, TensorType) else None
    if not isinstance(count, int) or count > MOST:
        raise Unconvertible(f"`{name}` has {count} elements, too many to be numbered in the model")
    return sizes


def size(b: Builder, x: Value, axis: int) -> Value:
    """Return the size of an axis, counted from the front, as a scalar; the rank must be known."""
    dim = shape_of("input", x)[axis]
    if isinstance(dim, int):
        return b.initializer("size", np.array(dim, np.int64))
    return b.Gather(b.Shape(x), b.initializer("axis", np.array(axis, np.int64)), axis=0)


def ints_of(b: Builder, x: Value) -> list[int] | None:
    """Return the integers in a tensor, which may be a new constant; None where they are unknown."""
    if isinstance(x.constant, Tensor) and x.source is b.graph and x.constant.size <= contents.MOST:
        return contents.ints(contents.of_array(x.constant.array()))
    return contents.ints(x.type.known) if isinstance(x.type, TensorType) else None


def unsqueezed(b: Builder, x: Value, axes: Iterable[int]) -> Value:
    """Emit Unsqueeze, for at least one axis, with the axes as an attribute or an input as in the opset."""
    return _with_axes(b, "Unsqueeze", x, tuple(axes))


def squeezed(b: Builder, x: Value, axes: Iterable[int]) -> Value:
    """Emit Squeeze as `unsqueezed` emits its opposite."""
    return _with_axes(b, "Squeeze", x, tuple(axes))


def _with_axes(b: Builder, op: str, x: Value, axes: Sequence[int]) -> Value:
    if not axes:
        return x
    if has_attribute(b, op, "axes"):
        return b.op(op, x, axes=ints("axes", axes))
    return b.op(op, x, as_input(b, "axes", axes))


def sizes(b: Builder, x: Value, axes: Iterable[int]) -> Value:
    """Return the sizes of some axes, counted from the front, as a 1-D tensor; the rank must be known."""
    dims = shape_of("input", x)
    parts: list[Value] = []
    for known, group in itertools.groupby(axes, lambda axis: isinstance(dims[axis], int)):
        listed = [*group]
        if known:
            parts.append(as_input(b, "sizes", [d for axis in listed if isinstance(d := dims[axis], int)]))
        else:
            parts.append(b.Gather(b.Shape(x), as_input(b, "axes", listed), axis=0))
    if not parts:
        return as_input(b, "sizes", [])
    return parts[0] if len(parts) == 1 else b.op("Concat", *parts, axis=0)


def indices(b: Builder, count: Value) -> Value:
    """Return the numbers from 0 up to `count`, a 1-D tensor of one int64, which is excluded.

    Raises Unconvertible where it is unknown, in an opset below which no operator could count.
    """
    known = ints_of(b, count)
    if known and known[0] <= MOST:
        return b.initializer("indices", np.arange(known[0], dtype=np.int64))
    if b.opset >= _RANGE:
        zero, one = (b.initializer("constant", np.array(i, np.int64)) for i in (0, 1))
        return b.Range(zero, squeezed(b, count, [0]), one)
    return counted(b, count)


def counted(b: Builder, count: Value) -> Value:
    """Return as many numbers from 0 on, without Range; raises Unconvertible as `indices` does."""
    if b.opset >= _COUNTS:
        return squeezed(b, b.NonZero(b.ConstantOfShape(count, value=np.ones(1, np.int64))), [0])
    raise Unconvertible(f"a size is unknown or large, and opset {b.opset - 1} has no operator that counts")


def numbered(b: Builder, places: Sequence[Value], counts: Sequence[Value]) -> Value:
    """Return the number of an element, row by row, from its index on each axis and the sizes of the axes."""
    number = places[0]
    for place, count in zip(places[1:], counts[1:], strict=True):
        number = b.Add(b.Mul(number, count), place)
    return number


def tuple_numbers(b: Builder, data: Value, tuples: Value) -> tuple[Value, int]:
    """Return the numbers of the parts of `data` that tuples of indices name, and the length of a tuple.

    `tuples` has one along its last axis; negative indices count from the end.
    """
    shape_of("data", data)
    *rows, width = shape_of("indices", tuples)
    if not isinstance(width, int) or not width:
        raise Unconvertible("the length of the tuples in `indices` is unknown or 0, and so are their axes")
    counts = [size(b, data, i) for i in range(width)]
    numbers = [b.initializer("place", np.array(i, np.int64)) for i in range(width)]
    places = [
        wrapped(b, b.Gather(tuples, i, axis=len(rows)), count)
        for i, count in zip(numbers, counts, strict=True)
    ]
    return numbered(b, places, counts), width


def wrapped(b: Builder, places: Value, count: Value) -> Value:
    """Return indices as int64, with those below 0 counted from the end of `count` elements."""
    kind = places.type
    if not isinstance(kind, TensorType) or kind.element is not INT64:
        places = b.Cast(places, to=INT64.number)
    known = ints_of(b, places)
    unsigned = isinstance(kind, TensorType) and kind.element.is_integer and not kind.element.is_signed
    if unsigned or (known is not None and all(i >= 0 for i in known)):
        return places
    zero = b.initializer("zero", np.array(0, np.int64))
    return b.Add(places, b.Mul(b.Cast(b.Less(places, zero), to=INT64.number), count))
