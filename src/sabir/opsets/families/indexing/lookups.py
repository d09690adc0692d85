"""Tables that map one value to another: sorted search for numbers, a dictionary for strings."""

from __future__ import annotations

import functools
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.opsets.typing import Array


@functools.lru_cache(maxsize=256)
def _table(keys: tuple[str, ...]) -> dict[str, int]:
    """Return the index of each text, of equal ones the last: a node looks texts up in each of its runs."""
    return {key: place for place, key in enumerate(keys)}


def places_of_texts(x: Array, keys: tuple[str, ...]) -> Array:
    """Return the index of each text of `x` in `keys`, as `places` does."""
    return numbers_of(x, _table(keys), -1)


def numbers_of(x: Array, table: Mapping[str, int], missing: int) -> Array:
    """Return the number of each text of `x` in a table, `missing` for a text that is not there."""
    found = map(table.get, x.ravel().tolist(), repeat(missing))
    return np.fromiter(found, np.int64, x.size).reshape(x.shape)


def places(x: Array, keys: Array, *, nan: bool = False) -> Array:
    """Return the index of each element of `x` in `keys`: of equal keys the last, and -1 for a missing one.

    With `nan` a NaN among the keys matches every NaN; otherwise NaN matches nothing.
    """
    if keys.dtype.kind == "O" or x.dtype.kind == "O":
        return places_of_texts(x, tuple(keys.tolist()))
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
    result: Array = np.empty(x.shape, values.dtype)
    result[...] = with_default(values, default)[places(x, keys, nan=nan)]
    return result


def with_default(values: Array, default: object) -> Array:
    """Return values and, after them, the one of a key that is missing."""
    table: Array = np.empty(len(values) + 1, values.dtype)
    table[:-1], table[-1] = values, default
    return table
