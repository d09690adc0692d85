"""Memory of former states that nothing refers to any more, for the results of a step.

Fresh memory is touched page by page for the first time, which takes longer than an optimizer's arithmetic.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Array

_MOST = 2  # the present state, and the one that is written


class Spares:
    """The arrays that were results of earlier runs, by name.

    An array is used again only where nothing but this object refers to it, neither directly nor by a view. A
    session that does not write into such arrays gets none any more.

    >>> spares = Spares()
    >>> spares.keep({'w': np.zeros(2)}, spares.free())
    >>> spares.free()
    {'w': array([0., 0.])}
    """

    def __init__(self) -> None:
        self._kept: dict[str, list[Array]] = {}
        self._are_used = True

    def free(self) -> dict[str, Array]:
        """Return an array for each name that has one which nothing else refers to."""
        found: dict[str, Array] = {}
        for name, arrays in self._kept.items():
            for place in range(len(arrays)):
                if _count(arrays, place) == _ALONE:
                    found[name] = arrays[place]
                    break
        return found

    def keep(self, results: Mapping[str, Any], offered: Mapping[str, Array]) -> None:
        """Keep the results of a run that could write into some arrays."""
        if any(results[name] is not array for name, array in offered.items()):
            self._are_used = False
            self._kept.clear()
        if not self._are_used:
            return
        for name, result in results.items():
            if name not in offered and isinstance(result, np.ndarray) and result.base is None:
                arrays = self._kept.setdefault(name, [])
                arrays.append(cast("Array", result))
                del arrays[:-_MOST]


def _count(arrays: list[Any], place: int) -> int:
    return sys.getrefcount(arrays[place])


_ALONE = _count([np.empty(0)], 0)


__all__ = ["Spares"]
