"""Heads that share keys and values: products whose second operand repeats each matrix, without copies.

Models write attention of grouped queries as a product with keys that are expanded, from `n` heads to
`n * count`, and reshaped. No strides express such a tensor, so it would be copied. Here the axis of heads
becomes two, `n` and `count`, in the product and in the maps and folds behind it; along the second the
matrices have the stride 0. Where a head has one row, the heads that share a matrix are rows of one product.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.loops import Contract, Expand, Expression, Map, Permute, Reduce, Reshape
from sabir.loops.walk import postorder, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.loops import Size, Sizes

_LEAST_RANK = 3  # heads, rows, columns


class _Heads(NamedTuple):
    """How an axis of heads, the third from the end, becomes two: `groups` matrices for `times` heads each.

    In a `folded` one the axis of rows has size 1, and its place is that of the heads of a group.
    """

    groups: Size
    times: int
    folded: bool

    def split(self, shape: Sizes) -> Sizes | None:
        """Return the new shape of what broadcasts to heads, rows and columns; None where it does not."""
        *batch, heads, rows, columns = shape
        if heads not in {1, self.groups * self.times} or (self.folded and rows != 1):
            return None
        axes = (1, 1) if heads == 1 else (self.groups, self.times)
        return (*batch, *axes, columns) if self.folded else (*batch, *axes, rows, columns)


def shared_heads(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions of slots, in which no matrix is repeated for the heads of a product."""
    found = list(postorder(expressions.values()))
    if not any(isinstance(x, Contract) and _repeated(x.b) for x in found):
        return dict(expressions)
    return rewrite(expressions, _Split().rule)


class _Split:
    """The rule of the pass; `inner` has the expressions with two axes of heads, by their views with one."""

    def __init__(self) -> None:
        self.inner: dict[Expression, tuple[_Heads, Expression]] = {}

    def rule(self, x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
        """Return a view of the expression computed with two axes of heads, if an operand has these axes."""
        operands = [new[o] for o in x.operands]
        match x:
            case Contract():
                return self._product(x, *operands[:2])
            case Map():
                return self._map(x, operands)
            case Reduce() if operands[0] in self.inner and x.axes == (x.rank - 1,):
                heads, inner = self.inner[operands[0]]
                shape = (*inner.shape[:-1], 1)
                return self._viewed(x, heads, replace(x, shape=shape, operand=inner, axes=(inner.rank - 1,)))
            case Permute() if operands[0] in self.inner and not self.inner[operands[0]][0].folded:
                return _permuted(x, self.inner[operands[0]][1])
            case Reshape() if isinstance(operands[0], Reshape):
                return loops.reshape(operands[0].operand, x.shape)
            case _:
                return None

    def _product(self, x: Contract, a: Expression, b: Expression) -> Expression | None:
        found = _repeated(b)
        if found is None or not _is_of_heads(x, a, b):
            return None
        heads = _Heads(found.groups, found.times, x.shape[-2] == 1)
        shape, inner = heads.split(x.shape), self._aligned(a, x.rank, heads)
        if shape is None or inner is None:
            return None
        matrices = found.matrices(folded=heads.folded)
        if isinstance(b, Permute):
            matrices = loops.permute(matrices, (*range(matrices.rank - 2), -1, -2))
        return self._viewed(x, heads, replace(x, shape=shape, a=inner, b=matrices))

    def _map(self, x: Map, operands: list[Expression]) -> Expression | None:
        heads = next((self.inner[o][0] for o in operands if o in self.inner and o.shape == x.shape), None)
        if heads is None:
            return None
        shape = heads.split(x.shape)
        inside = tuple(self._aligned(o, x.rank, heads) for o in operands)
        if shape is None or not all(inside):
            return None
        return self._viewed(x, heads, replace(x, shape=shape, inputs=inside))

    def _aligned(self, x: Expression, rank: int, heads: _Heads) -> Expression | None:
        """Return an operand that broadcasts to heads of a rank as one that broadcasts to the new axes."""
        if x in self.inner and self.inner[x][0] == heads:
            return self.inner[x][1]
        if x.rank == 0:
            return x
        shape = heads.split((1,) * (rank - x.rank) + x.shape)
        return None if shape is None else loops.reshape(x, shape)

    def _viewed(self, x: Expression, heads: _Heads, inner: Expression) -> Expression:
        """Return the view with one axis of heads of a new expression with two."""
        view = Reshape(x.element, x.shape, inner)
        self.inner[view] = heads, inner
        return view


def _permuted(x: Permute, inner: Expression) -> Expression:
    """Return the axes in another order of a tensor that has two axes of heads, as a view of it."""
    first = x.rank - _LEAST_RANK
    axes: list[int] = []
    for axis in x.axes:
        axes += (first, first + 1) if axis == first else [axis + (axis > first)]
    return loops.reshape(loops.permute(inner, axes), x.shape)


class _Repeated(NamedTuple):
    """Matrices that are each repeated, `times` in all; `expanded` has the repetitions as an axis."""

    expanded: Expand
    groups: Size
    times: int

    def matrices(self, *, folded: bool) -> Expression:
        """Return the matrices with an axis of stride 0, or without it."""
        if not folded:
            return self.expanded
        shape = self.expanded.shape
        return loops.reshape(self.expanded.operand, (*shape[:-_LEAST_RANK], *shape[-2:]))


def _repeated(b: Expression) -> _Repeated | None:
    """Return what a second operand repeats for several heads; it may be transposed."""
    if isinstance(b, Permute) and b.axes == (*range(b.rank - 2), b.rank - 1, b.rank - 2):
        b = b.operand
    if not isinstance(b, Reshape) or not isinstance(b.operand, Expand) or b.rank < _LEAST_RANK:
        return None
    x = b.operand
    if x.rank != b.rank + 1:
        return None
    *batch, groups, count, rows, columns = x.shape
    if not isinstance(count, int) or x.operand.shape != (*batch, groups, 1, rows, columns):
        return None
    whole = (*batch, groups * count, rows, columns)
    return _Repeated(x, groups, count) if b.shape == whole else None


def _is_of_heads(x: Contract, a: Expression, b: Expression) -> bool:
    """Return whether a product is one of matrices of floats, and neither operand is broadcast along heads."""
    if x.rows != 1 or x.depth != 1 or not x.is_float or x.scale is not None:
        return False
    return a.rank == b.rank == x.rank and a.shape[-_LEAST_RANK] == x.shape[-_LEAST_RANK]
