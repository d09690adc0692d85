"""Lowering of updates at indices."""

from __future__ import annotations

from sabir import loops
from sabir.ir import product
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.indexing.indexing import check_index_shape
from sabir.opsets.families.indexing.scattering import NONE
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes.shapes import axis_in


def elements(
    data: Expression, indices: Expression, updates: Expression, /, *, axis: int, reduction: str = NONE
) -> Expression:
    """Return `data` with one update for each index."""
    check_index_shape(data.shape, indices.shape, axis)
    along = axis_in(axis, data.rank)
    return loops.scatter(data, indices, updates, along, _function(reduction))


def tuples(
    data: Expression, indices: Expression, updates: Expression, /, *, reduction: str = NONE
) -> Expression:
    """Return `data` with one part for each tuple: rows of a matrix are updated by their numbers."""
    *head, width = indices.shape
    if not isinstance(width, int) or width > data.rank:
        raise NotLowered("the tuples are longer than the rank, or of an unknown length")
    if not loops.same_shape(updates.shape, (*head, *data.shape[width:])):
        raise NotLowered("whether the updates fit the tuples is known at run time only")
    places = [loops.squeeze(loops.narrow(indices, -1, i, 1), [-1]) for i in range(width)]
    op = _function(reduction)
    if width == 1 and len(head) == 1:  # a result in the shape of `data` needs no copy
        column = loops.reshape(places[0], (*head, *(1,) * (data.rank - 1)))
        return loops.scatter(data, loops.expand(column, updates.shape), updates, 0, op)
    count, part = product(head) or 0, product(data.shape[width:]) or 0
    matrix = loops.reshape(data, (product(data.shape[:width]) or 0, part))
    rows = loops.reshape(updates, (count, part))
    numbers = loops.expand(kernels.numbered(places, data.shape[:width]), head)
    column = loops.expand(loops.reshape(numbers, (count, 1)), rows.shape)
    return loops.reshape(loops.scatter(matrix, column, rows, 0, op), data.shape)


def _function(reduction: str) -> str:
    return "" if reduction == NONE else reduction
