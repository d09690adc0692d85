"""Views as addresses: the tensor in memory that a view reads, its offset and its strides."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from sabir.ir import Expr
from sabir.loops import (
    NOT_READ,
    Expand,
    Expression,
    Extent,
    Join,
    Number,
    Pad,
    Permute,
    Reshape,
    Size,
    Sizes,
    Slice,
    Stored,
    Windows,
    expression,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Located(NamedTuple):
    """The place of an expression in `base`, a tensor in memory; offset and strides count elements."""

    base: Expression
    offset: Size
    strides: Sizes


@expression
class Copy(Expression):
    """A copy of an expression in a separate buffer, or in the part of `into` that begins at `starts`."""

    operand: Expression
    into: Expression | None = field(default=None, metadata=NOT_READ)
    starts: Sizes = ()


VIEWS = (Permute, Reshape, Expand, Slice, Windows)


def is_number(x: Expression) -> bool:
    """Return whether an expression is one number, or a view of it."""
    while isinstance(x, VIEWS):
        x = x.operand
    return isinstance(x, (Number, Extent))


def is_reshape(x: Expression) -> TypeGuard[Reshape | Permute]:
    """Return whether a view only changes the shape: the elements remain in their order."""
    if isinstance(x, Permute):
        moved = [axis for axis in x.axes if x.operand.shape[axis] != 1]
        return moved == sorted(moved)
    return isinstance(x, Reshape)


class Views:
    """Finds the place in memory of each expression of a plan.

    `row_major` are the kinds of expressions whose kernels write only row-major results. `order` has the order
    of axes in memory of tensors that are not row-major: then a later Reshape of their permuted axes is a
    view. `copies` are the copies that views have turned out to need.
    """

    def __init__(self, row_major: tuple[type[Expression], ...] = ()) -> None:
        self._fixed = (*VIEWS, Stored, Join, Pad, *row_major)  # their order in memory is fixed
        self.order: dict[Expression, tuple[int, ...]] = {}
        self.copies: list[Copy] = []
        self._found: dict[Expression, Located] = {}

    def locate(self, x: Expression) -> Located:
        """Return the place of an expression; a Reshape without strides adds a copy."""
        chain: list[Expression] = []
        while x not in self._found and isinstance(x, VIEWS):
            chain.append(x)
            x = x.operand
        found = self._found.get(x)
        if found is None:
            found = self._found[x] = Located(x, 0, self._strides(x))
        for view in reversed(chain):
            found = self._found[view] = self._viewed(view, found)
        return found

    def bind(self, x: Expression, located: Located) -> None:
        """Set the place of an expression."""
        self._found[x] = located

    def prefer(self, x: Reshape) -> None:
        """Choose the order in memory of the operand of a Reshape, so that the Reshape is a view."""
        inner = x.operand
        if not isinstance(inner, Permute) or isinstance(inner.operand, self._fixed):
            return
        base = inner.operand
        if (
            base in self.order
            or base in self._found
            or regrouped(inner.shape, row_major(inner.shape), x.shape) is None
        ):
            return
        strides = row_major(base.shape)
        if regrouped(inner.shape, [strides[axis] for axis in inner.axes], x.shape) is None:
            self.order[base] = inner.axes

    def _strides(self, x: Expression) -> Sizes:
        order = self.order.get(x)
        if order is None:
            return row_major(x.shape)
        inner = row_major([x.shape[axis] for axis in order])
        return tuple(inner[order.index(axis)] for axis in range(x.rank))

    def _viewed(self, x: Expression, of: Located) -> Located:
        match x:
            case Permute():
                return of._replace(strides=tuple(of.strides[axis] for axis in x.axes))
            case Slice():
                moved = [s * n for s, n in zip(x.starts, of.strides, strict=True)]
                offset = of.offset
                for part in moved:
                    offset += part
                return Located(
                    of.base, offset, tuple(s * n for s, n in zip(x.steps, of.strides, strict=True))
                )
            case Expand():
                return of._replace(strides=broadcast_strides(x.operand.shape, of.strides, x.shape))
            case Reshape():
                return self._reshaped(x, of)
            case Windows():
                return of._replace(strides=window_strides(x, of.strides))
            case _:
                raise TypeError(f"{type(x).__name__} is no view")

    def _reshaped(self, x: Reshape, of: Located) -> Located:
        strides = regrouped(x.operand.shape, of.strides, x.shape)
        if strides is not None:
            return of._replace(strides=strides)
        copy = Copy(x.element, x.operand.shape, x.operand)
        self.copies.append(copy)
        self._found[copy] = Located(copy, 0, row_major(copy.shape))
        return Located(copy, 0, row_major(x.shape))


def parts_of(x: Join | Pad) -> list[Copy]:
    """Return the copies that fill a Join or a Pad."""
    if isinstance(x, Pad):
        return _pad_parts(x)
    found: list[Copy] = []
    start: Size = 0
    for part in x.parts:
        starts = tuple(start if axis == x.axis else 0 for axis in range(x.rank))
        found.append(Copy(x.element, part.shape, part, x, starts))
        start += part.shape[x.axis]
    return found


def _pad_parts(x: Pad) -> list[Copy]:
    """Return the copies that fill a padded tensor: the operand, then the padding along each axis."""
    inside, found = list(x.operand.shape), [Copy(x.element, x.operand.shape, x.operand, x, x.before)]
    number = Number(x.element, (), x.number)
    starts: list[Size] = list(x.before)
    for axis in reversed(range(x.rank)):
        whole, past = x.shape[axis], x.before[axis] + inside[axis]
        for start, count in ((0, x.before[axis]), (past, whole - past)):
            if count != 0:
                shape = (*inside[:axis], count, *inside[axis + 1 :])
                corner = (*starts[:axis], start, *starts[axis + 1 :])
                found.append(Copy(x.element, shape, number, x, corner))
        inside[axis], starts[axis] = whole, 0
    return found


def window_strides(x: Windows, strides: Sizes) -> Sizes:
    """Return the strides of windows from the strides of their operand."""
    found = list(strides)
    for axis, step in zip(x.axes, x.strides, strict=True):
        found[axis] = strides[axis] * step
    elements = (strides[axis] * step for axis, step in zip(x.axes, x.dilations, strict=True))
    return (*found, *elements)


def row_major(shape: Sequence[Size]) -> Sizes:
    """Return the strides of a row-major tensor."""
    found: list[Size] = []
    step: Size = 1
    for size in reversed(shape):
        found.append(step)
        step *= size
    return tuple(found[::-1])


def broadcast_strides(shape: Sizes, strides: Sizes, wanted: Sizes) -> Sizes:
    """Return the strides of a tensor that is broadcast to a shape: 0 along the broadcast axes."""
    head = len(wanted) - len(shape)
    found: list[Size] = [0] * head
    found += [
        0 if size == 1 and target != 1 else stride
        for size, stride, target in zip(shape, strides, wanted[head:], strict=True)
    ]
    return tuple(found)


def regrouped(shape: Sequence[Size], strides: Sequence[Size], wanted: Sequence[Size]) -> Sizes | None:
    """Return the strides of a reshaped tensor; None if no strides express it."""
    if 0 in shape:
        return row_major(wanted)
    found = _by_axes(shape, strides, wanted)
    if found is None and all(
        s == r for d, s, r in zip(shape, strides, row_major(shape), strict=True) if d != 1
    ):
        return row_major(wanted)  # contiguous elements can be reshaped, whatever the symbols are
    return found


def _by_axes(shape: Sequence[Size], strides: Sequence[Size], wanted: Sequence[Size]) -> Sizes | None:
    """Return the strides of a reshape that splits and merges axes; None for any other."""
    old = [(d, s) for d, s in zip(shape, strides, strict=True) if d != 1]
    new = [d for d in wanted if d != 1]
    found: list[Size] = []
    i = j = 0
    while i < len(old) and j < len(new):
        have, want, first_old, first_new = old[i][0], new[j], i, j
        i, j = i + 1, j + 1
        while have != want:
            if _sample(have) < _sample(want):
                if i == len(old):
                    return None
                have, i = have * old[i][0], i + 1
            else:
                if j == len(new):
                    return None
                want, j = want * new[j], j + 1
        if any(old[k][1] != old[k + 1][1] * old[k + 1][0] for k in range(first_old, i - 1)):
            return None
        step = old[i - 1][1]
        group: list[Size] = []
        for size in reversed(new[first_new:j]):
            group.append(step)
            step *= size
        found += group[::-1]
    if i < len(old) or j < len(new):
        return None
    remaining = iter(found)
    return tuple(0 if d == 1 else next(remaining) for d in wanted)


def _sample(size: Size) -> int:
    """Return a number to compare sizes by: each symbol counts as a different large number."""
    if isinstance(size, int):
        return size
    sampled = size.substitute({name: 1009 + sum(map(ord, name)) % 97 for name in sorted(size.symbols)})
    return sampled if isinstance(sampled, int) else 1 << 40


def is_symbolic(size: Size) -> bool:
    """Return whether a size is symbolic."""
    return isinstance(size, Expr)
