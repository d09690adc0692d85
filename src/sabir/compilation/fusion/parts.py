"""Placement of joins and pads: the parts of nested concatenations are written once, into the outermost one.

If the only reader of a Join or Pad is another Join or Pad, the inner tensor is a view of the outer one, and
its parts are written there. A part that is reshaped before the join is written in the shape that its kernel
has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.compilation.fusion.views import VIEWS, Copy, Located, parts_of, regrouped
from sabir.loops import Expression, Join, Number, Pad, Reshape, Slice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.compilation.fusion.grouping import Grouping
    from sabir.loops import Size, Sizes


def parts_to_write(grouping: Grouping, x: Join | Pad) -> Iterator[Copy]:
    """Place a tensor in memory; yield the copies that fill it, except for parts that are views of it."""
    if x not in grouping.whole:
        _place(grouping, x)
    base = grouping.views.locate(x).base
    grouping.stored[base] = None
    grouping.writers.setdefault(base, [])
    for copy in parts_of(x):
        source = _source(copy.operand)
        placed = grouping.whole.get(source) is x and _located(grouping, copy) == grouping.views.locate(source)
        if not placed:
            yield _in_own_shape(grouping, copy)


def _place(grouping: Grouping, x: Join | Pad) -> None:
    """Place tensors inside of their only readers, from the outermost one to `x`."""
    chain: list[Join | Pad] = [x]
    while (reader := _reader(grouping, chain[-1])) is not None:
        chain.append(reader)
    for outer in reversed(chain):
        grouping.whole.setdefault(outer, None)
        for copy in parts_of(outer) if len(chain) > 1 else ():
            source = _source(copy.operand)
            if not isinstance(source, (Join, Pad)) or source in grouping.whole:
                continue
            located = _located(grouping, copy) if _reader(grouping, source) is outer else None
            if located is not None:
                grouping.views.bind(source, located)
                grouping.whole[source] = outer


def _reader(grouping: Grouping, x: Expression) -> Join | Pad | None:
    """Return the only reader of a tensor, also through views, if it is a Join or a Pad."""
    readers = set(_readers(grouping, x))
    reader = readers.pop() if len(readers) == 1 else None
    return reader if isinstance(reader, (Join, Pad)) else None


def _readers(grouping: Grouping, x: Expression) -> Iterator[object]:
    """Yield the readers of a tensor, also through views; None if it is an output."""
    if x in grouping.results:
        yield None
    for user in grouping.users.get(x, ()):
        if isinstance(user, VIEWS):
            yield from _readers(grouping, user)
        else:
            yield user


def _source(x: Expression) -> Expression:
    while isinstance(x, Reshape):
        x = x.operand
    return x


def _located(grouping: Grouping, copy: Copy) -> Located | None:
    """Return the place of a part, in the shape in which it is computed; None if no strides express it."""
    if copy.into is None:
        return None
    whole = grouping.views.locate(copy.into)
    offset = whole.offset
    for start, stride in zip(copy.starts, whole.strides, strict=True):
        offset += start * stride
    shape = _source(copy.operand).shape
    strides = regrouped(copy.shape, whole.strides, shape)
    if strides is None or (shape and shape[-1] != 1 and strides[-1] != 1):
        return None
    return Located(whole.base, offset, _written(shape, strides))


def _written(shape: Sizes, strides: Sizes) -> Sizes:
    """Return strides with row-major ones for axes of size 1: kernels write vectors along the last axis."""
    found: list[Size] = []
    after: Size = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        found.append(after if size == 1 else stride)
        after = found[-1] * size
    return tuple(found[::-1])


def _in_own_shape(grouping: Grouping, copy: Copy) -> Copy:
    """Return the copy of a part in the shape in which it is computed."""
    source, into = _source(copy.operand), copy.into
    if source is copy.operand or isinstance(source, (*VIEWS, Number)) or into is None:
        return copy
    located = _located(grouping, copy)
    if located is None:
        return copy
    part = Slice(into.element, copy.shape, into, copy.starts, (1,) * into.rank)
    place = Reshape(into.element, source.shape, part)
    grouping.views.bind(place, located)
    return replace(copy, shape=source.shape, operand=source, into=place, starts=(0,) * source.rank)
