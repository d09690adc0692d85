"""Buckets: arrays of the state side by side in memory, which workers exchange as one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sabir.distributed import even_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.ir import Array


class Bucket:
    """Some variables of one element type as parts of one array, and the range of each worker in it.

    With `owners` a range has the variables that a worker owns, otherwise all ranges have the same length.

    >>> bucket = Bucket({'a': np.zeros(2), 'b': np.ones(2)}, 2, {'a': 1, 'b': 0})
    >>> bucket.array, bucket.ranges
    (array([1., 1., 0., 0.]), [(0, 2), (2, 4)])
    """

    def __init__(
        self, arrays: Mapping[str, Array], workers: int, owners: Mapping[str, int] | None = None
    ) -> None:
        """Take the first values."""
        names = sorted(arrays, key=owners.__getitem__) if owners is not None else list(arrays)
        sizes = [arrays[name].size for name in names]
        ends = np.cumsum([0, *sizes]).tolist()
        self.array: Array = np.empty(ends[-1], next(iter(arrays.values())).dtype)
        self.views = {
            name: self.array[begin:end].reshape(arrays[name].shape)
            for name, begin, end in zip(names, ends[:-1], ends[1:], strict=True)
        }
        """The variables by name, as parts of `array`."""
        self.fill(arrays)
        self.ranges = even_ranges(ends[-1], workers)
        if owners is not None:
            counts = [sum(arrays[n].size for n in names if owners[n] == w) for w in range(workers)]
            borders = np.cumsum([0, *counts]).tolist()
            self.ranges = list(pairwise(borders))

    def fill(self, arrays: Mapping[str, Array]) -> None:
        """Copy the arrays that have a name of the bucket into it."""
        for name, view in self.views.items():
            if name in arrays:
                view[...] = arrays[name]


def in_groups(names: Iterable[str], arrays: Mapping[str, Array], size: int) -> list[list[str]]:
    """Return names in groups of one element type, each ended by the array that makes it `size` bytes or more.

    >>> in_groups('abc', dict.fromkeys('abc', np.zeros(4)), 64)
    [['a', 'b'], ['c']]
    """
    found: list[list[str]] = []
    room = 0
    for name in names:
        array = arrays[name]
        if room <= 0 or arrays[found[-1][0]].dtype != array.dtype:
            found.append([])
            room = size
        found[-1].append(name)
        room -= array.nbytes
    return found


def by_type(names: Iterable[str], arrays: Mapping[str, Array]) -> Sequence[list[str]]:
    """Return names in one group for each element type.

    >>> by_type('ab', {'a': np.zeros(2), 'b': np.zeros(2, np.float32)})
    [['a'], ['b']]
    """
    found: dict[np.dtype, list[str]] = {}
    for name in names:
        found.setdefault(arrays[name].dtype, []).append(name)
    return list(found.values())


__all__ = ["Bucket", "by_type", "in_groups"]
