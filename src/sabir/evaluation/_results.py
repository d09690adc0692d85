"""The results of a run as arrays that belong to the caller alone.

Many operators return a view: of a feed, a constant or another result. A result must not share memory with any
of them, or an edit of one array would change another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Array

_OWNERS = (np.ndarray, list, dict)  # what has memory, or contains what has


def owned(results: Iterable[Any], feeds: Iterable[Any]) -> list[Any]:
    """Return the results, copied where they may share memory; a view of a constant is read-only."""
    roots = {_root(array) for feed in feeds for array in _arrays(feed)}
    return [_owned(result, roots) for result in results]


def _owned(value: Any, roots: set[int]) -> Any:
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        root = _root(array)
        if not array.flags.writeable or root in roots:
            return array.copy()
        roots.add(root)
        return array
    if isinstance(value, list):
        return [_owned(item, roots) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        if not isinstance(next(iter(entries.values()), None), _OWNERS):  # all are of one type
            return entries.copy()
        return {key: _owned(item, roots) for key, item in entries.items()}
    return value


def _arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _arrays(item)
    elif isinstance(value, dict):
        yield from _arrays(list(cast("dict[Any, Any]", value).values()))


def _root(array: Array) -> int:
    """Return the id of the object that owns an array's memory."""
    found: Any = array
    while True:
        if isinstance(found, np.ndarray):
            below: Any = cast("Array", found).base
        elif isinstance(found, memoryview):
            below = found.obj
        else:
            below = None
        if below is None:
            return id(cast("object", found))
        found = below
