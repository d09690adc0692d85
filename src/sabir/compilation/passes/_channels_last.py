"""Channels last: expressions between convolutions and poolings are computed in the layout NHWC.

    conv -> NCHW view -> map -> NHWC view -> conv      before
    conv -> map -> conv                                after

A convolution computes NHWC, and lowering wraps the result in a Permute to NCHW. This pass sinks the Permute
below the maps, reductions, slices and joins that read it, until it meets the Permute of the next convolution
and both cancel. Only tensors that enter or leave such a part of a graph are transposed, and what the gradient
of filters reads and computes: its image, whose windows are larger than their number, is read as NCHW, and its
result is written in the order of the filters.
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

_LEAST_RANK = 3  # N, C and one more axis


def channels_last(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions by slot, computed in NHWC around convolutions and poolings."""
    found = postorder(expressions.values())
    moved = rewrite(expressions, _Layouts(x for x in found if isinstance(x, Contract)).rule)
    return rewrite(moved, _filters_first)


def is_seed(x: Expression) -> bool:
    """Return whether an expression is computed in NHWC whatever its readers want."""
    return isinstance(x, Slide) or (isinstance(x, Contract) and x.rows > 1)


class _Layouts:
    """The rule of the pass; `last` has the new expressions in NHWC.

    `products` are the windows that products read.
    """

    def __init__(self, products: Iterable[Contract]) -> None:
        self.products = set(map(_behind_views, products))
        self.last: set[Expression] = set()

    def rule(self, x: Expression, new: Mapping[Expression, Expression]) -> Expression:
        """Return the new expression; `new` has its new operands."""
        found = self._sink(x, [new[o] for o in x.operands]) or rebuilt(x, new)
        if is_seed(found) or self._is_split(found):
            self.last.add(found)
        return found

    def _is_split(self, x: Expression) -> bool:
        """Return whether an expression concatenates the channels of all groups of a convolution."""
        if not isinstance(x, Reshape) or not isinstance(x.operand, Permute):
            return False
        return is_seed(x.operand.operand) and x.operand.axes != _to_nchw(x.operand.rank)

    def _inner(self, x: Expression) -> Expression | None:
        """Return the NHWC expression if `x` is its view as NCHW."""
        if isinstance(x, Permute) and x.rank >= _LEAST_RANK and x.axes == _to_nchw(x.rank):
            return x.operand if x.operand in self.last or x.rank > _LEAST_RANK else None
        return None

    def _sink(self, x: Expression, operands: list[Expression]) -> Expression | None:
        """Return the NCHW view of an expression that is computed in NHWC, if an operand is such a view."""
        match x:
            case Permute():
                return _permuted(operands[0], x.axes)
            case Windows() if x in self.products and x.is_large:  # a product reads these with strides
                return replace(x, operand=_spatial_last(operands[0], x.axes[-1]))
            case Windows():
                return replace(x, operand=_contiguous(operands[0]))
            case Map():
                if not any(o.rank == x.rank and self._inner(o) for o in operands):
                    return None
                aligned = tuple(self._aligned(o, x.rank) for o in operands)
                return self._viewed(x, replace(x, shape=_nhwc_of(x.shape), inputs=aligned))
            case Join():
                if not any(map(self._inner, operands)):
                    return None
                aligned = tuple(self._aligned(o, x.rank) for o in operands)
                return self._viewed(
                    x, replace(x, shape=_nhwc_of(x.shape), parts=aligned, axis=_to_nchw(x.rank)[x.axis])
                )
            case Reduce() | Slice() | Expand() | Pad() | Take():
                inner = self._inner(operands[0])
                return None if inner is None else self._of_one(x, inner, operands)
            case _:
                return None

    def _of_one(
        self, x: Reduce | Slice | Expand | Pad | Take, inner: Expression, operands: list[Expression]
    ) -> Expression | None:
        axis_of, shape = _to_nchw(x.rank), _nhwc_of(x.shape)
        match x:
            case Reduce():
                axes = tuple(sorted(axis_of[axis] for axis in x.axes))
                return self._viewed(x, replace(x, shape=shape, operand=inner, axes=axes))
            case Slice():
                starts, steps = _nhwc_of(x.starts), tuple(x.steps[axis] for axis in _to_nhwc(x.rank))
                return self._viewed(x, replace(x, shape=shape, operand=inner, starts=starts, steps=steps))
            case Pad():
                return self._viewed(x, replace(x, shape=shape, operand=inner, before=_nhwc_of(x.before)))
            case Expand():
                if inner.rank != x.rank:
                    return None
                return self._viewed(x, replace(x, shape=shape, operand=inner))
            case Take():
                if x.indices.rank != 1:
                    return None
                found = replace(x, shape=shape, operand=inner, indices=operands[1], axis=axis_of[x.axis])
                return self._viewed(x, found)

    def _viewed(self, x: Expression, last: Expression) -> Expression:
        """Return the NCHW view of a new expression in NHWC."""
        self.last.add(last)
        return Permute(x.element, x.shape, last, _to_nchw(x.rank))

    def _aligned(self, x: Expression, rank: int) -> Expression:
        """Return an operand that broadcasts to NCHW as one that broadcasts to NHWC."""
        if x.rank == 0:
            return x
        if x.rank < rank:
            x = Reshape(x.element, ((1,) * (rank - x.rank) + x.shape), x)
        return _permuted(x, _to_nhwc(rank))


def _to_nchw(rank: int) -> tuple[int, ...]:
    """Return the permutation from NHWC to NCHW: axis `i` of NCHW is axis `[i]` of NHWC."""
    return (0, rank - 1, *range(1, rank - 1))


def _to_nhwc(rank: int) -> tuple[int, ...]:
    """Return the permutation from NCHW to NHWC."""
    return (0, *range(2, rank), 1)


def _nhwc_of(shape: Sizes) -> Sizes:
    return tuple(shape[axis] for axis in _to_nhwc(len(shape)))


def _permuted(x: Expression, axes: tuple[int, ...]) -> Expression:
    """Return a permutation of the axes; two permutations become one."""
    if isinstance(x, Permute):
        axes, x = tuple(x.axes[axis] for axis in axes), x.operand
    if axes == tuple(range(x.rank)):
        return x
    return Permute(x.element, tuple(x.shape[axis] for axis in axes), x, axes)


def _behind_views(x: Contract) -> Expression:
    """Return the first operand of a product below its views, down to the windows that it reads."""
    a = x.a
    while isinstance(a, (Permute, Reshape)):
        a = a.operand
    return a


def _filters_first(x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
    """Copy a gradient of filters, whose product has the filters last, in the order of the filters.

    A kernel of transposed tiles reads and writes whole cache lines. That of an optimizer does not.
    """
    if not isinstance(x, Permute) or not isinstance(x.operand, Contract) or x.axes[-1] == x.rank - 1:
        return None
    windows = _behind_views(x.operand)
    if not isinstance(windows, Windows) or not windows.is_large:
        return None
    y = rebuilt(x, new)
    return Copy(y.element, y.shape, y)


def _spatial_last(x: Expression, axis: int) -> Expression:
    """Return an image `[C, ..., N]`; a copy in the order NCHW unless its last spatial axis has stride 1.

    Large windows overlap: products read an element of the copy once for each of them, side by side along `k`.
    """
    if not isinstance(x, VIEWS) or is_number(x) or Views().locate(x).strides[axis] == 1:
        return x
    whole = _permuted(x, (x.rank - 1, *range(x.rank - 1)))
    return _permuted(Copy(whole.element, whole.shape, whole), (*range(1, x.rank), 0))


def _contiguous(x: Expression) -> Expression:
    """Return a tensor whose last axis has stride 1: the tensor, or a copy."""
    if not isinstance(x, VIEWS) or is_number(x) or x.shape[-1] == 1:
        return x
    return x if Views().locate(x).strides[-1] == 1 else Copy(x.element, x.shape, x)
