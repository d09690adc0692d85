"""Parts of a sequence that come several times in a row: the repeated blocks of a model.

Each item of the sequence has a kind, a number, and the places of the earlier items that it reads. Blocks are
repeated where their kinds are equal and where each item reads the same items of its own block.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.ir import Array

_LONGEST = 400  # items of one block; each length costs a comparison of the whole sequence
_ROUNDS = 4  # searches: each in what the one before leaves
_WORK = 200  # items that are looked at, for each item of the sequence


@dataclass(frozen=True, order=True, slots=True)
class Repeat:
    """A part of a sequence: `count` blocks of `period` items each, from the item `start` on.

    >>> Repeat(2, 3, 4).stop
    14
    """

    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        """The place after the last block."""
        return self.start + self.period * self.count


def repeats(
    kinds: Sequence[int], reads: Sequence[Sequence[int]], weights: Sequence[int], least: int
) -> list[Repeat]:
    """Return disjoint repeats in the order of the sequence, those that spare most of it first chosen.

    `weights` is the number of nodes of each item. A repeat spares the nodes of all its blocks but one, and
    must spare at least `least`. The work is in proportion to the length of the sequence: where it does not
    suffice to look at all that might be repeats, some are left out.

    >>> repeats([5, 1, 2, 1, 2, 1, 2, 9], [[], [0], [1], [2], [3], [4], [5], [6]], [1] * 8, 4)
    [Repeat(start=1, period=2, count=3)]
    """
    return _Finder(kinds, reads, weights, least).found()


class _Finder:
    """Looks for repeats, in what the ones found before leave."""

    def __init__(
        self, kinds: Sequence[int], reads: Sequence[Sequence[int]], weights: Sequence[int], least: int
    ) -> None:
        self._kinds, self._reads, self._least = np.asarray(kinds, np.int64), reads, least
        self._summed = np.concatenate([[0], np.cumsum(np.asarray(weights, np.int64))])
        self._work = _WORK * (len(kinds) + 1)

    def found(self) -> list[Repeat]:
        found: list[Repeat] = []
        for _ in range(_ROUNDS):
            more = self._round(_gaps(found, len(self._kinds)))
            if not more:
                break
            found = sorted([*found, *more])
        return found

    def _round(self, gaps: Iterable[tuple[int, int]]) -> list[Repeat]:
        """Return repeats in some parts of the sequence, the one that spares most first chosen."""
        chosen: list[Repeat] = []
        taken = np.zeros(len(self._kinds), bool)
        for _, period, first, total in sorted(c for gap in gaps for c in self._candidates(*gap)):
            if self._work < 0:
                break
            self._work -= total
            repeat = None if taken[first : first + total].any() else self._placed(first, period, total)
            if repeat is not None and self._spared(repeat.start + period, repeat.stop) >= self._least:
                chosen.append(repeat)
                taken[repeat.start : repeat.stop] = True
        return chosen

    def _candidates(self, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield where kinds repeat: what that spares, negative, with the period, the start and the length."""
        kinds = self._kinds[start:stop]
        for period in range(1, min(len(kinds) // 2, _LONGEST) + 1):
            for place, length in _runs(kinds[period:] == kinds[:-period], period):
                first, total = start + place, length + period
                spared = self._spared(first + period, first + total // period * period)
                if spared >= self._least:
                    yield -spared, period, first, total

    def _spared(self, start: int, stop: int) -> int:
        return int(self._summed[stop] - self._summed[start])

    def _placed(self, first: int, period: int, total: int) -> Repeat | None:
        """Return the blocks that begin where fewest items read items of another block; None for unequal ones.

        A sequence of equal kinds can be cut anywhere: `abcabcabca` is three times `abc`, or `bca`.
        """
        shifts = range(min(total % period, period - 1) + 1)
        self._work -= len(shifts) * period
        crossings = [_crossings(first + shift, period, self._reads) for shift in shifts]
        for shift in sorted(shifts, key=crossings.__getitem__):
            start, most = first + shift, (total - shift) // period
            equal = self._equal_blocks(start, period, most)
            self._work -= period * (equal + 1)
            if equal > 1:
                return Repeat(start, period, equal)
        return None

    def _equal_blocks(self, start: int, period: int, most: int) -> int:
        """Return how many blocks from a place on have the links of the first one."""
        links = _links(start, period, self._reads)
        following = range(start + period, start + period * most, period)
        equal = takewhile(lambda at: _links(at, period, self._reads) == links, following)
        return 1 + sum(1 for _ in equal)


def _gaps(found: Sequence[Repeat], length: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a sequence that no repeat covers."""
    starts = [0, *(repeat.stop for repeat in found)]
    stops = [*(repeat.start for repeat in found), length]
    yield from zip(starts, stops, strict=True)


def _runs(equal: Array, least: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the length of each run of true entries that is at least so long."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], equal, [False]])))
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    long = lengths >= least
    yield from zip(starts[long].tolist(), lengths[long].tolist(), strict=True)


def _crossings(start: int, period: int, reads: Sequence[Sequence[int]]) -> int:
    """Return the number of items outside of a block that its second instance reads."""
    block = range(start + period, start + 2 * period)
    return len({read for item in block for read in reads[item] if read not in block})


def _links(start: int, period: int, reads: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return, for each item of a block, the items of the block that it reads, by their places in it."""
    block = range(start, start + period)
    return [[read - start for read in reads[item] if read in block] for item in block]
