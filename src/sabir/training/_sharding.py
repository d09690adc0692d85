"""Data-parallel steps: parts of a batch computed by replicas, and their results and gradients averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from sabir.base import FeedError
from sabir.training._losses import SUMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Array


class Work(NamedTuple):
    """What a replica computes: an algorithm for a part of a batch, with the values of the state.

    `path` is the seed, the number of the step and that of the part, on which random numbers depend.
    """

    algorithm: int
    feeds: dict[str, Array]
    outputs: tuple[str, ...]
    path: tuple[int, ...]


Computed = tuple[dict[str, Any], dict[str, "Array"]]


class Pool(Protocol):
    """Replicas of a training session, which hold no state of their own."""

    @property
    def workers(self) -> int:
        """How many replicas there are."""
        ...

    def run(self, values: Mapping[str, Array], work: Sequence[Work]) -> list[Computed]:
        """Return the outputs and the updates of each piece of work, in order."""
        ...


def run_sharded(
    pool: Pool,
    algorithm: int,
    feeds: Mapping[str, Any],
    values: Mapping[str, Array],
    outputs: tuple[str, ...],
    path: tuple[int, int],
) -> Computed:
    """Run an algorithm for the parts of a batch, and return the means of outputs and updates.

    A part counts with the number of its samples, so that means over a batch are those of the whole batch;
    the sums of metrics are added.
    What is no floating-point number is taken from the first part. Raises FeedError for feeds without samples.
    """
    arrays = {name: np.asarray(value) for name, value in feeds.items()}
    count = min((len(a) for a in arrays.values() if a.ndim), default=0)
    if not count or any(a.ndim == 0 or len(a) != count for a in arrays.values()):
        raise FeedError(
            "a distributed step divides its feeds by samples: all have as many, along the first axis"
        )
    parts = np.array_split(np.arange(count), min(pool.workers, count))
    work = [
        Work(algorithm, {n: a[part[0] : part[-1] + 1] for n, a in arrays.items()}, outputs, (*path, index))
        for index, part in enumerate(parts)
    ]
    found = pool.run(values, work)
    shares = [len(part) / count for part in parts]
    ones = [1.0] * len(parts)
    results = {
        name: _mean([r[name] for r, _ in found], ones if name.endswith(SUMS) else shares)
        for name in found[0][0]
    }
    return results, {name: _mean([u[name] for _, u in found], shares) for name in found[0][1]}


def _mean(items: Sequence[Any], shares: Sequence[float]) -> Any:
    """Return the weighted mean of arrays of floating-point numbers of one shape; else the first item."""
    first = np.asarray(items[0])
    if len(items) == 1 or first.dtype.kind not in "fV" or any(np.shape(i) != first.shape for i in items):
        return items[0]
    total = sum(np.asarray(item, np.float64) * share for item, share in zip(items, shares, strict=True))
    return np.asarray(total).astype(first.dtype)


__all__ = ["Computed", "Pool", "Work", "run_sharded"]
