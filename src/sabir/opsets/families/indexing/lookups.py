"""Tables that map one value to another: sorted search for numbers, a dictionary for strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sabir.opsets.typing import Array


def places(x: Array, keys: Array, *, nan: bool = False) -> Array:
    """Return the index of each element of `x` in `keys`: of equal keys the last, and -1 for a missing one.

    With `nan` a NaN among the keys matches every NaN; otherwise NaN matches nothing.
    """
    if keys.dtype.kind == "O" or x.dtype.kind == "O":
        table = {key: place for place, key in enumerate(keys.tolist())}
        found = [table.get(item, -1) for item in x.ravel().tolist()]
        return np.array(found, np.int64).reshape(x.shape)
    if not len(keys):
        return np.full(x.shape, -1, np.int64)
    order = np.argsort(keys, kind="stable")  # NaN comes last
    ordered = keys[order]
    at = np.searchsorted(ordered, x, side="right") - 1
    hit = ordered[at] == x
    if nan:
        hit |= np.isnan(ordered[at]) & np.isnan(x)
    return np.where((at >= 0) & hit, order[at], -1)


def mapped(x: Array, keys: Array, values: Array, default: object, *, nan: bool = False) -> Array:
    """Return for each element of `x` the value of its key, or `default`."""
    table: Array = np.empty(len(values) + 1, values.dtype)
    table[:-1], table[-1] = values, default
    result: Array = np.empty(x.shape, values.dtype)
    result[...] = table[places(x, keys, nan=nan)]
    return result
