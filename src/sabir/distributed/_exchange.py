"""What the workers of a group compute together: means, arrays of parts, and what one of them knows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.distributed._peers import Peers
    from sabir.ir import Array

_BLOCK = 1 << 15  # elements that are summed in double at a time, so that the sums stay in the cache


class Exchange:
    """Collective operations, which all workers of a group call in the same order.

    Each worker owns a range of the elements of an array, sends the other ranges to their owners, and gets
    their own from them: as many bytes as in a ring, in two messages a pair of workers instead of many in
    turn. Sums are made in double, in the order of the workers, so all get the same bits.

    >>> array = np.float32([1, 2])
    >>> Exchange(Peers(0, {})).mean(array, [(0, 2)], [1.0])
    >>> array
    array([1., 2.], dtype=float32)
    """

    def __init__(self, peers: Peers) -> None:
        """Take the connections; nothing else uses them from then on."""
        self.peers = peers
        self._number = 0

    def mean(self, array: Array, ranges: Sequence[tuple[int, int]], shares: Sequence[float]) -> None:
        """Replace the range of this worker by the sum of those of all workers, each times its share.

        Workers whose share is 0 send nothing. `array` is contiguous and of rank 1.
        """
        peers, number = self.peers, self._next()
        if shares[peers.rank]:
            for peer, (begin, end) in self._others(ranges):
                peers.send(peer, number, array[begin:end])
        begin, end = ranges[peers.rank]
        if begin == end:
            return
        own = array[begin:end]
        parts = [
            (own if peer == peers.rank else peers.take(peer, number).view(array.dtype), share)
            for peer, share in enumerate(shares)
            if share
        ]
        _add_up(own, parts)

    def gather(self, array: Array, ranges: Sequence[tuple[int, int]]) -> None:
        """Replace the range of each other worker by what that worker has in it."""
        peers, number = self.peers, self._next()
        begin, end = ranges[peers.rank]
        if begin < end:
            for peer in self._peers():
                peers.send(peer, number, array[begin:end])
        for peer, (first, last) in self._others(ranges):
            array[first:last] = peers.take(peer, number).view(array.dtype)

    def shared(self, arrays: Mapping[str, tuple[int, Array]]) -> dict[str, Array]:
        """Return small arrays as their owners have them; each is passed with the number of its owner.

        All workers pass the same names, shapes and types; the contents matter on the worker that owns them.
        """
        peers, number = self.peers, self._next()
        by_owner: dict[int, dict[str, Array]] = {}
        for name, (owner, array) in arrays.items():
            by_owner.setdefault(owner, {})[name] = array
        found: dict[str, Array] = {}
        own = by_owner.pop(peers.rank, {})
        if own:
            data = np.concatenate([np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in own.values()])
            for peer in self._peers():
                peers.send(peer, number, data)
        for owner, expected in by_owner.items():
            data, place = peers.take(owner, number), 0
            for name, array in expected.items():
                part = data[place : place + array.nbytes]
                found[name], place = part.copy().view(array.dtype).reshape(array.shape), place + array.nbytes
        return {name: own[name] if name in own else found[name] for name in arrays}

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _peers(self) -> list[int]:
        """Return the other workers, from the next one on, so that not all send to one at the same time."""
        rank, count = self.peers.rank, self.peers.count
        return [(rank + step) % count for step in range(1, count)]

    def _others(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
        """Return the ranges of other workers that are not empty."""
        return [(peer, ranges[peer]) for peer in self._peers() if ranges[peer][0] < ranges[peer][1]]


def even_ranges(size: int, count: int) -> list[tuple[int, int]]:
    """Return `count` ranges that divide so many elements, some of them longer by one.

    >>> even_ranges(5, 2)
    [(0, 3), (3, 5)]
    """
    ends = [size * place // count + (size * place % count > 0) for place in range(count + 1)]
    return list(pairwise(ends))


def _add_up(into: Array, parts: Sequence[tuple[Array, float]]) -> None:
    """Write the sum of arrays times their shares into an array, which may be one of them."""
    if len(parts) == 1:
        into[...] = parts[0][0]
        return
    total, term = np.empty(_BLOCK), np.empty(_BLOCK)
    for begin in range(0, len(into), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        count = len(into[block])
        for index, (part, share) in enumerate(parts):
            wide = term[:count] if index else total[:count]
            np.copyto(wide, part[block], casting="unsafe")
            wide *= share
            if index:
                total[:count] += wide
        np.copyto(into[block], total[:count], casting="unsafe")


__all__ = ["Exchange", "even_ranges"]
