"""Sums of arrays whose error does not grow with their length, whichever axes they run along.

numpy adds pairwise along the axis whose elements are the nearest in memory, and one row after another along
the others: there each addition rounds by as much as the sum so far is large. So long sums along the other
axes are computed in blocks of a few rows, and then the sums of these.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.opsets.typing import Array

_ROWS = 16  # added one after another, as numpy does where it adds pairwise
_COLUMNS = 256  # of a block of squares


def summed(
    x: Array, axis: int | Sequence[int] | None = None, *, keepdims: bool = False,
    dtype: np.dtype[Any] | None = None,
) -> Array:  # fmt: skip
    """Return the sums of `x` over some axes, by default over all, in its element type or in `dtype`.

    >>> from sabir.opsets.families.numbers.sums import summed
    >>> x = np.full((1 << 16, 4), 0.1, np.float32)
    >>> bool(abs(summed(x, 0)[0] - 6553.6) < 0.01), bool(abs(x.sum(axis=0)[0] - 6553.6) < 0.01)
    (True, False)
    """
    listed = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = tuple(a % x.ndim for a in listed)
    along = _long_axis(x, axes) if x.dtype.kind not in "iub" else None
    if along is None:
        return np.asarray(np.add.reduce(x, axis=axes, dtype=dtype, keepdims=keepdims))
    whole = x.shape[along] // _ROWS * _ROWS
    head, tail = np.split(x, [whole], axis=along)
    blocks = head.reshape(*x.shape[:along], whole // _ROWS, _ROWS, *x.shape[along + 1 :])
    sums = np.add.reduce(blocks, axis=along + 1, dtype=dtype)
    if tail.shape[along]:
        rest = np.add.reduce(tail, axis=along, dtype=dtype, keepdims=True)
        sums = np.concatenate([sums, rest], axis=along)
    return summed(sums, axes, keepdims=keepdims)


def _long_axis(x: Array, axes: Sequence[int]) -> int | None:
    """Return the longest axis along which numpy adds one row after another; None where it adds few rows."""
    by_distance = sorted((a for a in range(x.ndim) if x.shape[a] != 1), key=lambda a: abs(x.strides[a]))
    apart = [a for a in by_distance if a in axes]
    if apart == by_distance[: len(apart)] and x.flags.forc:
        return None  # numpy takes axes that lie one behind another for one
    if apart[:1] == by_distance[:1]:
        del apart[:1]
    return max(apart, key=lambda a: x.shape[a]) if math.prod(x.shape[a] for a in apart) > _ROWS else None


def sums_of_squares(rows: Array) -> Array:
    """Return the sum of the squares of each row of a matrix, as a column."""
    count, columns = rows.shape
    whole = columns // _COLUMNS * _COLUMNS
    blocks = rows[:, :whole].reshape(count, whole // _COLUMNS, _COLUMNS)
    rest = rows[:, whole:]
    sums = summed(np.einsum("ikj,ikj->ik", blocks, blocks), 1, keepdims=True)
    return sums + np.einsum("ij,ij->i", rest, rest)[:, None]
