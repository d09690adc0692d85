"""Positions along a line: as near as possible to where each item wants to be, without overlaps."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Wish(NamedTuple):
    """Where an item wants to be, and how strongly."""

    position: float
    weight: float


def settle(wishes: Sequence[Wish], distances: Sequence[int]) -> list[int]:
    """Return whole positions with the least sum of weighted squared differences from the wishes.

    The order of the items stays, and `distances` are the least ones between each item and the next. Once
    they are subtracted, that is an isotonic regression: adjacent violators are pooled to their mean.
    """
    starts = list(accumulate(distances, initial=0))
    pools: list[tuple[float, float, int]] = []  # mean, weight, number of items
    for wish, start in zip(wishes, starts, strict=False):
        mean, weight, count = wish.position - start, wish.weight, 1
        while pools and pools[-1][0] > mean:
            before, heavy, many = pools.pop()
            mean = (before * heavy + mean * weight) / (heavy + weight)
            weight, count = weight + heavy, count + many
        pools.append((mean, weight, count))
    means = [round(mean) for mean, _, count in pools for _ in range(count)]
    return [mean + start for mean, start in zip(means, starts, strict=False)]


__all__ = ["Wish", "settle"]
