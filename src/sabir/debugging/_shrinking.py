"""The part of a list that a failure needs, by delta debugging."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def shrink(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return a part of a list for which `fails` still returns true, and that needs each of its items.

    `fails` must be true of all items. Runs of items are left out, the last ones first: half of them, then
    shorter ones, down to single items until none of these can go (Zeller and Hildebrandt, 2002). The calls of
    `fails` depend on its answers alone.

    >>> shrink(range(100), lambda part: 7 in part and 60 in part)
    [7, 60]
    """
    left = list(items)
    size = max(len(left) // 2, 1)
    while left:
        before = len(left)
        left = _without_runs(left, size, fails)
        if size == 1 and len(left) == before:
            break
        size = max(size // 2, 1)
    return left


def _without_runs(items: list[T], size: int, fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Leave out each run of so many items that the failure does not need."""
    end = len(items)
    while end > 0:
        start = max(end - size, 0)
        rest = items[:start] + items[end:]
        if fails(rest):
            items = rest
        end = start
    return items
