"""Shared heads: grouped-query attention without copies of keys and values.

    contract(q [heads, rows, K], reshape(expand(k [n, 1, K, N], [n, times, K, N]), [heads, K, N]))    before
    contract(q [n, times, rows, K], expand(k [n, 1, K, N], [n, times, K, N]))                         after

Models expand the keys from `n` heads to `heads = n * times` and reshape them. No strides express the result,
so it would be copied. This pass splits the axis of heads into two, in the product and in the maps and
reductions that read it; along the second the matrices have stride 0. If each head has one row, the heads that
share a matrix become the rows of one product.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.loops import Contract, Expand, Expression, Map, Permute, Reduce, Reshape
from sabir.loops.walk import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.loops import Size, Sizes

_LEAST_RANK = 3  # heads, rows, columns


class _Heads(NamedTuple):
    """The split of the axis of heads, the third from the end, into two: `groups` and `times`.

    If it is `folded`, there is one row, and the heads of a group replace the axis of rows.
    """

    groups: Size
    times: int
    folded: bool

    def split(self, shape: Sizes) -> Sizes | None:
        """Return the new shape of a tensor that broadcasts to heads, rows and columns; None for any other."""
        *batch, heads, rows, columns = shape
        if heads not in {1, self.groups * self.times} or (self.folded and rows != 1):
            return None
        axes = (1, 1) if heads == 1 else (self.groups, self.times)
        return (*batch, *axes, columns) if self.folded else (*batch, *axes, rows, columns)


def shared_heads(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions by slot, where no matrix is copied for the heads of a product."""
    return rewrite(expressions, _Split().rule)


def reads_repeated(x: Expression) -> bool:
    """Return whether an expression is a product whose second operand repeats each matrix."""
    return isinstance(x, Contract) and _repeated(x.b) is not None


class _Split:
    """The rule of the pass; `inner` has the expressions with two axes of heads, by their views with one."""

    def __init__(self) -> None:
        self.inner: dict[Expression, tuple[_Heads, Expression]] = {}

    def rule(self, x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
        """Return the expression computed with two axes of heads, as a view, if an operand has two."""
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
        aligned = tuple(self._aligned(o, x.rank, heads) for o in operands)
        if shape is None or not all(aligned):
            return None
        return self._viewed(x, heads, replace(x, shape=shape, inputs=aligned))

    def _aligned(self, x: Expression, rank: int, heads: _Heads) -> Expression | None:
        """Return an operand in a shape that broadcasts with two axes of heads; None if it has none."""
        if x in self.inner and self.inner[x][0] == heads:
            return self.inner[x][1]
        if x.rank == 0:
            return x
        shape = heads.split((1,) * (rank - x.rank) + x.shape)
        return None if shape is None else loops.reshape(x, shape)

    def _viewed(self, x: Expression, heads: _Heads, inner: Expression) -> Expression:
        """Return an expression with two axes of heads as a view with one."""
        view = Reshape(x.element, x.shape, inner)
        self.inner[view] = heads, inner
        return view


def _permuted(x: Permute, inner: Expression) -> Expression:
    """Return a permutation of a tensor with one axis of heads as a view of `inner`, which has two."""
    first = x.rank - _LEAST_RANK
    axes: list[int] = []
    for axis in x.axes:
        axes += (first, first + 1) if axis == first else [axis + (axis > first)]
    return loops.reshape(loops.permute(inner, axes), x.shape)


class _Repeated(NamedTuple):
    """`groups` matrices, each repeated `times`; `expanded` has an axis for the repetitions."""

    expanded: Expand
    groups: Size
    times: int

    def matrices(self, *, folded: bool) -> Expression:
        """Return the matrices with the axis of repetitions, whose stride is 0; if `folded`, without it."""
        if not folded:
            return self.expanded
        shape = self.expanded.shape
        return loops.reshape(self.expanded.operand, (*shape[:-_LEAST_RANK], *shape[-2:]))


def _repeated(b: Expression) -> _Repeated | None:
    """Return the repeated matrices of a second operand, which may be transposed; None without them."""
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
    """Return whether it is a matrix product of floats, and neither operand is broadcast along heads."""
    if x.rows != 1 or x.depth != 1 or not x.is_float or x.scale is not None:
        return False
    return a.rank == b.rank == x.rank and a.shape[-_LEAST_RANK] == x.shape[-_LEAST_RANK]
