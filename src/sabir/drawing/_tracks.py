"""Horizontal tracks between two layers of a text picture, on which no line runs over another one."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.drawing._layout import Leg


class Run(NamedTuple):
    """A part of a leg with one horizontal track: it comes down in the column `top`, and goes on in others.

    `after` is the run of the same leg that ends in `top`, by number, or None where the leg begins.
    """

    net: int
    top: int
    bottoms: tuple[int, ...]
    after: int | None = None

    @property
    def ends(self) -> tuple[int, int]:
        """The leftmost and the rightmost column of the track."""
        return min(self.top, *self.bottoms), max(self.top, *self.bottoms)


class Tracks(NamedTuple):
    """The runs of a gap with the track of each, from 0 for the topmost, and how many tracks there are."""

    runs: list[Run]
    tracks: dict[int, int]
    height: int


def tracks_of(legs: Sequence[Leg]) -> Tracks:
    """Return tracks for the legs that are not straight.

    A leg that ends in the column in which another one begins needs a lower track, or the two would be one
    vertical line. Where legs wait for each other in a circle, one of them takes a detour by a free column.
    """
    runs = [Run(leg.net, leg.top, leg.bottoms) for leg in legs if leg.bottoms != (leg.top,)]
    used = {column for leg in legs for column in (leg.top, *leg.bottoms)}
    begin = {run.top: number for number, run in enumerate(runs)}
    pending, tracks = dict.fromkeys(range(len(runs))), dict[int, int]()
    track = 0
    while pending:
        ready = [number for number in pending if not _waits(runs, number, pending, begin)]
        if not ready:
            divided = next(iter(pending))
            pending[_detour(runs, divided, used)] = None
            continue
        for number in _side_by_side(runs, ready):
            tracks[number] = track
            del pending[number]
        track += 1
    return Tracks(runs, tracks, track)


def _waits(runs: Sequence[Run], number: int, pending: Mapping[int, None], begin: Mapping[int, int]) -> bool:
    """Return whether a run must be below one that has no track yet; `begin` has the run of each upper end."""
    run = runs[number]
    above = (begin.get(column, number) for column in run.bottoms)
    return run.after in pending or any(other != number and other in pending for other in above)


def _side_by_side(runs: Sequence[Run], ready: Sequence[int]) -> list[int]:
    """Return as many runs as fit on one track, from the left."""
    chosen: list[int] = []
    end = -1
    for number in sorted(ready, key=lambda n: runs[n].ends[1]):
        left, right = runs[number].ends
        if left > end:
            chosen.append(number)
            end = right
    return chosen


def _detour(runs: list[Run], number: int, used: set[int]) -> int:
    """Divide a run in two at the nearest free column; returns the number of the second one."""
    run = runs[number]
    free = next(c for step in count(1) for c in (run.top + step, run.top - step) if c >= 0 and c not in used)
    used.add(free)
    runs[number] = Run(run.net, run.top, (free,), run.after)
    runs.append(Run(run.net, free, run.bottoms, number))
    return len(runs) - 1


__all__ = ["Run", "Tracks", "tracks_of"]
