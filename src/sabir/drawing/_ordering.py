"""The order of the items in each layer, with few crossings of lines."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.drawing._levels import Levels, Link

_SWEEPS = 12
_PATIENCE = 4  # sweeps without fewer crossings


def order(levels: Levels) -> None:
    """Sort each layer by the mean place of neighbours, down and up in turn, and keep the best order.

    This is the barycentre heuristic of Sugiyama, Tagawa and Toda (1981).
    """
    above, below = _neighbours(levels)
    best, least, waited = [list(layer) for layer in levels.layers], crossings(levels), 0
    for sweep in range(_SWEEPS):
        if least == 0 or waited == _PATIENCE:
            break
        downwards = sweep % 2 == 0
        layers = levels.layers[1:] if downwards else levels.layers[-2::-1]
        _sweep(levels, layers, above if downwards else below)
        found, waited = crossings(levels), waited + 1
        if found < least:
            best, least, waited = [list(layer) for layer in levels.layers], found, 0
    levels.layers[:] = best


def crossings(levels: Levels) -> int:
    """Return how many pairs of pieces cross, between all neighbouring layers."""
    places = _places(levels)
    return sum(_crossings(links, places) for links in levels.links)


def _crossings(links: Iterable[Link], places: Sequence[int]) -> int:
    """Return the inversions among the lower ends, in the order of the upper ends."""
    ends = sorted((places[link.upper], places[link.lower]) for link in links)
    seen: list[int] = []
    found = 0
    for _, end in ends:
        found += len(seen) - bisect_right(seen, end)
        insort(seen, end)
    return found


def _sweep(levels: Levels, layers: Iterable[list[int]], neighbours: Sequence[Sequence[int]]) -> None:
    places = _places(levels)
    for layer in layers:
        means = {item: _mean([places[n] for n in neighbours[item]], places[item]) for item in layer}
        layer.sort(key=means.__getitem__)
        for place, item in enumerate(layer):
            places[item] = place


def _mean(places: Sequence[int], own: int) -> float:
    return sum(places) / len(places) if places else own


def _places(levels: Levels) -> list[int]:
    places = [0] * (levels.boxes + len(levels.nets))
    for layer in levels.layers:
        for place, item in enumerate(layer):
            places[item] = place
    return places


def _neighbours(levels: Levels) -> tuple[list[list[int]], list[list[int]]]:
    """Return the items above each item, and those below it."""
    count = levels.boxes + len(levels.nets)
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for links in levels.links:
        for link in links:
            above[link.lower].append(link.upper)
            below[link.upper].append(link.lower)
    return above, below


__all__ = ["crossings", "order"]
