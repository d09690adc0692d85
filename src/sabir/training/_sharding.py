"""Batches that are divided among workers, and the results of their parts as those of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import FeedError
from sabir.training._losses import SUMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.ir import Array


class Shares(NamedTuple):
    """The feeds of each worker, and its share of the samples; workers without samples come last."""

    feeds: list[dict[str, Array]]
    shares: tuple[float, ...]


def divided(feeds: Mapping[str, Any], workers: int) -> Shares:
    """Divide the feeds of a batch by samples; raises FeedError for feeds without samples.

    >>> divided({'x': np.arange(3)}, 2)
    Shares(feeds=[{'x': array([0, 1])}, {'x': array([2])}], shares=(0.6666666666666666, 0.3333333333333333))
    """
    arrays = {name: np.asarray(value) for name, value in feeds.items()}
    count = min((len(a) for a in arrays.values() if a.ndim), default=0)
    if not count or any(a.ndim == 0 or len(a) != count for a in arrays.values()):
        raise FeedError(
            "a distributed step divides its feeds by samples: all have as many, along the first axis"
        )
    parts = np.array_split(np.arange(count), workers)
    return Shares(
        [{n: a[p[0] : p[-1] + 1] for n, a in arrays.items()} if len(p) else {} for p in parts],
        tuple(len(p) / count for p in parts),
    )


def joined(
    results: Sequence[Mapping[str, Any]], shares: Sequence[float], has_rows: Callable[[str], bool]
) -> dict[str, Any]:
    """Return the results of a batch, of those of its parts.

    `has_rows` says whether an output has a row for each sample. The sums of metrics are added, other
    floating-point numbers are means by the number of samples, so that means over a batch are those of the
    whole batch. What is no floating-point number is taken from the first part.

    >>> joined([{'loss': np.float32(1)}, {'loss': np.float32(2)}], [0.25, 0.75], lambda name: False)
    {'loss': array(1.75, dtype=float32)}
    """
    parts = [(found, share) for found, share in zip(results, shares, strict=True) if share]
    first, _ = parts[0]
    together: dict[str, Any] = {}
    for name in first:
        items = [found[name] for found, _ in parts]
        if np.ndim(items[0]) and not name.endswith(SUMS) and has_rows(name):
            together[name] = np.concatenate(items)
        else:
            is_sum = name.endswith(SUMS)
            together[name] = _mean(items, [1.0 if is_sum else share for _, share in parts])
    return together


def _mean(items: Sequence[Any], shares: Sequence[float]) -> Any:
    """Return the weighted mean of arrays of floating-point numbers of one shape; else the first item."""
    first = np.asarray(items[0])
    if len(items) == 1 or first.dtype.kind not in "fV" or any(np.shape(i) != first.shape for i in items):
        return items[0]
    total = sum(np.asarray(item, np.float64) * share for item, share in zip(items, shares, strict=True))
    return np.asarray(total).astype(first.dtype)


__all__ = ["Shares", "divided", "joined"]
