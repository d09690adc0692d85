"""Caches that drop the keys before the window: which positions their rows have before and after a call.

With a capacity C, a window W and T keys so far, the first L rows have the last L positions in order: L = T up
to C keys; after that rows are dropped by C - W + 1 at a time, as soon as there are more than C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from sabir.opsets.typing import Array

NO_KEY = -1  # the position of a row that has none


class SlidingCache(NamedTuple):
    """The rows of a cache, followed by those of new keys, and the rows of the cache after the call."""

    positions: Array  # (batch, capacity + new): the position of each row
    sources: Array  # (batch, capacity): the row that each row of the next cache is, or NO_KEY

    @classmethod
    def of(cls, starts: Array, ends: Array, sizes: tuple[int, int], new: int) -> SlidingCache:
        """Return the rows of a call; `sizes` are the capacity and the window.

        `starts` and `ends` are the numbers of keys of each batch item before and after the call.
        """
        capacity, _ = sizes
        kept, places = _resident(starts, *sizes)[:, None], np.arange(capacity)
        first = starts[:, None] - kept  # the position of row 0
        old = np.where(places < kept, first + places, NO_KEY)
        added = starts[:, None] + np.arange(new)
        count = _resident(ends, *sizes)[:, None]
        wanted = ends[:, None] - count + places
        sources = np.where(wanted < starts[:, None], wanted - first, capacity + wanted - starts[:, None])
        sources = np.where(places < count, sources, NO_KEY)
        return cls(np.concatenate([old, added], axis=1), sources)

    def allowed(self, own: Array, window: int) -> Array:
        """Return which rows queries at the positions `own`, (batch, 1, queries, 1), attend to."""
        places = self.positions[:, None, None, :]
        return (places >= 0) & (places <= own) & (places > own - window)

    def of_rows(self, bias: Array) -> Array:
        """Return the bias of each row from that of each position, which is the last axis."""
        places = np.maximum(self.positions, 0)[:, None, None, :]
        shape = (len(places), *bias.shape[1:3])
        wide = np.broadcast_to(bias, (*shape, bias.shape[3]))
        return np.take_along_axis(wide, np.broadcast_to(places, (*shape, places.shape[3])), axis=3)

    def next(self, rows: Array) -> Array:
        """Return the next cache of all rows, (batch, heads, capacity + new, size), with zeros for no key."""
        indices = self.sources[:, None, :, None]
        taken = np.take_along_axis(rows, np.maximum(indices, 0), axis=2)
        return np.where(indices == NO_KEY, np.zeros((), rows.dtype), taken)


def _resident(keys: Array, capacity: int, window: int) -> Array:
    """Return how many rows of a cache have a key after this many keys."""
    step = capacity - window + 1
    excess = np.maximum(keys - capacity, 0)
    return keys - step * -(-excess // step)
