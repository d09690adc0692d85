"""Channels last: what convolutions and poolings compute stays in the order in which their neighbours read it.

A convolution computes (N, ..., C), and its result is a view of that as (N, C, ...). Behind it, maps, folds,
slices and joins are computed in the order (N, ..., C) too, and the views that lead there and back cancel. So
only what enters such a part of a graph, or leaves it, is reordered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.compilation.fusion.views import VIEWS, Copy, Views, is_number
from sabir.loops import (
    Contract,
    Expand,
    Expression,
    Join,
    Map,
    Pad,
    Permute,
    Reduce,
    Reshape,
    Slice,
    Slide,
    Take,
    Windows,
)
from sabir.loops.walk import postorder, rebuilt, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.loops import Sizes

_LEAST_RANK = 3  # a batch, channels, one more axis


def channels_last(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions of slots with all that belongs to convolutions in the order (N, ..., C)."""
    found = list(postorder(expressions.values()))
    if not any(map(_is_seed, found)):
        return dict(expressions)
    return rewrite(expressions, _Layouts(x for x in found if isinstance(x, Contract)).rule)


def _is_seed(x: Expression) -> bool:
    return isinstance(x, Slide) or (isinstance(x, Contract) and x.rows > 1)


class _Layouts:
    """The rule of the pass; `last` are the new expressions in the order (N, ..., C).

    `products` are the windows that products read.
    """

    def __init__(self, products: Iterable[Contract]) -> None:
        self.products = set(map(_behind_views, products))
        self.last: set[Expression] = set()

    def rule(self, x: Expression, new: Mapping[Expression, Expression]) -> Expression:
        """Return the new expression of one whose operands have theirs."""
        found = self._sunk(x, [new[o] for o in x.operands]) or rebuilt(x, new)
        if _is_seed(found) or self._is_split(found):
            self.last.add(found)
        return found

    def _is_split(self, x: Expression) -> bool:
        """Whether an expression is the channels of all groups of a convolution side by side."""
        if not isinstance(x, Reshape) or not isinstance(x.operand, Permute):
            return False
        return _is_seed(x.operand.operand) and x.operand.axes != _first(x.operand.rank)

    def _inner(self, x: Expression) -> Expression | None:
        """Return the expression in the order (N, ..., C) of which another one is the view as (N, C, ...)."""
        if isinstance(x, Permute) and x.rank >= _LEAST_RANK and x.axes == _first(x.rank):
            return x.operand if x.operand in self.last or x.rank > _LEAST_RANK else None
        return None

    def _sunk(self, x: Expression, operands: list[Expression]) -> Expression | None:
        """Return the view of what an expression computes in the order (N, ..., C), if an operand has it."""
        match x:
            case Permute():
                return _permuted(operands[0], x.axes)
            case Windows() if x in self.products and x.is_large:  # a product reads such where they lie
                return replace(x, operand=operands[0])
            case Windows():
                return replace(x, operand=_contiguous(operands[0]))
            case Map():
                if not any(o.rank == x.rank and self._inner(o) for o in operands):
                    return None
                inside = tuple(self._aligned(o, x.rank) for o in operands)
                return self._first(x, replace(x, shape=_moved(x.shape), inputs=inside))
            case Join():
                if not any(map(self._inner, operands)):
                    return None
                inside = tuple(self._aligned(o, x.rank) for o in operands)
                return self._first(
                    x, replace(x, shape=_moved(x.shape), parts=inside, axis=_first(x.rank)[x.axis])
                )
            case Reduce() | Slice() | Expand() | Pad() | Take():
                inner = self._inner(operands[0])
                return None if inner is None else self._of_one(x, inner, operands)
            case _:
                return None

    def _of_one(
        self, x: Reduce | Slice | Expand | Pad | Take, inner: Expression, operands: list[Expression]
    ) -> Expression | None:
        places, shape = _first(x.rank), _moved(x.shape)
        match x:
            case Reduce():
                axes = tuple(sorted(places[axis] for axis in x.axes))
                return self._first(x, replace(x, shape=shape, operand=inner, axes=axes))
            case Slice():
                starts, steps = _moved(x.starts), tuple(x.steps[axis] for axis in _last(x.rank))
                return self._first(x, replace(x, shape=shape, operand=inner, starts=starts, steps=steps))
            case Pad():
                return self._first(x, replace(x, shape=shape, operand=inner, before=_moved(x.before)))
            case Expand():
                if inner.rank != x.rank:
                    return None
                return self._first(x, replace(x, shape=shape, operand=inner))
            case Take():
                if x.indices.rank != 1:
                    return None
                found = replace(x, shape=shape, operand=inner, indices=operands[1], axis=places[x.axis])
                return self._first(x, found)

    def _first(self, x: Expression, last: Expression) -> Expression:
        """Return the view as (N, C, ...) of a new expression in the order (N, ..., C)."""
        self.last.add(last)
        return Permute(x.element, x.shape, last, _first(x.rank))

    def _aligned(self, x: Expression, rank: int) -> Expression:
        """Return an operand that broadcasts to (N, C, ...) as one that broadcasts to (N, ..., C)."""
        if x.rank == 0:
            return x
        if x.rank < rank:
            x = Reshape(x.element, ((1,) * (rank - x.rank) + x.shape), x)
        return _permuted(x, _last(rank))


def _first(rank: int) -> tuple[int, ...]:
    """Return the order that makes (N, C, ...) of (N, ..., C); it says where each axis of the first is."""
    return (0, rank - 1, *range(1, rank - 1))


def _last(rank: int) -> tuple[int, ...]:
    """Return the order that makes (N, ..., C) of (N, C, ...)."""
    return (0, *range(2, rank), 1)


def _moved(shape: Sizes) -> Sizes:
    return tuple(shape[axis] for axis in _last(len(shape)))


def _permuted(x: Expression, axes: tuple[int, ...]) -> Expression:
    """Return the axes in another order; an order of an order is one."""
    if isinstance(x, Permute):
        axes, x = tuple(x.axes[axis] for axis in axes), x.operand
    if axes == tuple(range(x.rank)):
        return x
    return Permute(x.element, tuple(x.shape[axis] for axis in axes), x, axes)


def _behind_views(x: Contract) -> Expression:
    """Return what the first operand of a product is a view of, or the windows that it reads."""
    a = x.a
    while isinstance(a, (Permute, Reshape)):
        a = a.operand
    return a


def _contiguous(x: Expression) -> Expression:
    """Return a tensor whose last axis lies side by side in memory: itself, or a copy."""
    if not isinstance(x, VIEWS) or is_number(x) or x.shape[-1] == 1:
        return x
    return x if Views().locate(x).strides[-1] == 1 else Copy(x.element, x.shape, x)
