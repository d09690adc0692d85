"""Repeats as views: a gather that takes each element `n` times in order becomes a broadcast.

    take(x, [0, 0, 1, 1, 2, 2])                          before: nearest-neighbour resizing by a whole factor
    reshape(expand(reshape(x, (3, 1)), (3, 2)), (6,))    after

A gather along the last axis loads an index for each element, which costs more than the element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.loops import Expand, Expression, Reshape, Stored, Take
from sabir.loops.walk import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.loops import Size


MOST_REPEATS = 8  # of each element: the code of a kernel grows with them


def repeats_as_views(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions by slot, where elements that repeat along the last axis are views."""
    return rewrite(expressions, _view)


def repeats(x: Expression) -> bool:
    """Return whether an expression takes each element of an axis several times in order."""
    return isinstance(x, Take) and _times(x) > 0


def _view(x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
    """Return the view that repeats elements along some axes; None unless the last axis is one of them."""
    times: dict[int, int] = {}
    base = x
    while isinstance(base, Take) and base.axis not in times and (count := _times(base)):
        times[base.axis] = count
        base = base.operand
    if x.rank - 1 not in times:
        return None
    apart: list[Size] = []
    wide: list[Size] = []
    for axis, size in enumerate(base.shape):
        apart += [size, 1] if axis in times else [size]
        wide += [size, times[axis]] if axis in times else [size]
    view = Expand(x.element, tuple(wide), Reshape(x.element, tuple(apart), new[base]))
    return Reshape(x.element, x.shape, view)


def _times(x: Take) -> int:
    """Return `n` if the indices take each element of the axis `n` times in order, 1 < n; else 0."""
    size, indices = x.operand.shape[x.axis], x.indices
    if not isinstance(indices, Stored) or indices.array is None or indices.rank != 1:
        return 0
    if not isinstance(size, int) or size == 0 or x.element == "bool":
        return 0
    times = len(indices.array) // size
    if not 1 < times <= MOST_REPEATS or len(indices.array) != times * size:
        return 0
    return times if np.array_equal(indices.array, np.arange(size).repeat(times)) else 0
