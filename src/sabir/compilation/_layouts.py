"""Channels last: what convolutions and poolings compute stays in the order in which their neighbours read it.

A convolution computes (N, ..., C), and its result is a view of that as (N, C, ...). Behind it, maps, folds,
slices and joins are computed in the order (N, ..., C) too, and the views that lead there and back cancel. So
only what enters such a part of a graph, or leaves it, is reordered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.compilation._views import VIEWS, Copy, Views, is_number, operands_of
from sabir.loops import (
    Best,
    Contract,
    Couple,
    Cumulate,
    Descend,
    Expand,
    Expression,
    Join,
    Map,
    MatrixSteps,
    Pad,
    Permute,
    PoolRegions,
    Recur,
    Reduce,
    Reshape,
    Scatter,
    Slice,
    Slide,
    Take,
    Windows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sabir.loops import Sizes

_LEAST_RANK = 3  # a batch, channels, one more axis


def channels_last(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions of slots with all that belongs to convolutions in the order (N, ..., C)."""
    found = list(postorder(expressions.values()))
    if not any(map(_is_seed, found)):
        return dict(expressions)
    layouts = _Layouts(x for x in found if isinstance(x, Contract))
    for x in found:
        layouts.visit(x)
    return {slot: layouts.new[x] for slot, x in expressions.items()}


def _is_seed(x: Expression) -> bool:
    return isinstance(x, Slide) or (isinstance(x, Contract) and x.rows > 1)


def postorder(roots: Iterable[Expression], seen: set[Expression] | None = None) -> Iterator[Expression]:
    """Yield expressions, each once and after its operands, but for those `seen`, to which they are added."""
    pending = [(x, False) for x in reversed(list(roots))]
    seen = set() if seen is None else seen
    while pending:
        x, ready = pending.pop()
        if ready:
            yield x
        elif x not in seen:
            seen.add(x)
            pending.append((x, True))
            pending += [(o, False) for o in reversed(operands_of(x))]


class _Layouts:
    """The new expressions; `last` are those in the order (N, ..., C) behind a convolution or a pooling.

    `products` are the windows that products read.
    """

    def __init__(self, products: Iterable[Contract]) -> None:
        self.products = set(map(_behind_views, products))
        self.new: dict[Expression, Expression] = {}
        self.last: set[Expression] = set()

    def visit(self, x: Expression) -> None:
        """Find the new expression of one whose operands have theirs."""
        operands = [self.new[o] for o in operands_of(x)]
        if any(o is not old for o, old in zip(operands, operands_of(x), strict=True)):
            found = self._sunk(x, operands) or rebuilt(x, operands)
        else:
            found = self._sunk(x, operands) or x
        if _is_seed(found) or self._is_split(found):
            self.last.add(found)
        self.new[x] = found

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
                return self._first(x, replace(x, shape=_moved(x.shape), operands=inside))
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


def rebuilt(x: Expression, operands: list[Expression]) -> Expression:
    """Return an expression of other operands."""
    match x:
        case Map():
            return replace(x, operands=tuple(operands))
        case Join():
            return replace(x, parts=tuple(operands))
        case Contract():
            names = [n for n in ("a", "b", "zero", "scale", "less") if getattr(x, n) is not None]
            return replace(x, **dict(zip(names, operands, strict=True)))
        case MatrixSteps() | PoolRegions():
            return x.of(operands)
        case Recur():
            return replace(x, operands=tuple(operands))
        case Take():
            return replace(x, operand=operands[0], indices=operands[1])
        case Scatter():
            return replace(x, operand=operands[0], indices=operands[1], updates=operands[2])
        case Slide():
            return replace(x, operand=operands[0], weights=operands[1] if x.weights else None)
        case Reduce() | Cumulate() | Best() | Couple() | Descend() | Pad():
            return replace(x, operand=operands[0])
        case Permute() | Reshape() | Expand() | Slice() | Windows():
            return replace(x, operand=operands[0])
        case _:
            raise TypeError(f"{type(x).__name__} has no operands")
