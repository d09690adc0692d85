"""Batches of training data: parts of arrays in an order that the seed decides, or what an iterable yields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from sabir.base import FeedError, UnsupportedError, quote

if TYPE_CHECKING:
    from sabir.ir import Array

Batch: TypeAlias = Mapping[str, Any]
Data: TypeAlias = Mapping[str, Any] | Iterable[Batch]

_SHUFFLING = 2  # beside the random numbers of initializations and steps


class Batches:
    """The batches of every epoch.

    Arrays are cut along their first axis; an iterable yields feeds, and is iterated anew for each epoch.

    >>> [b['x'].tolist() for b in Batches({'x': [1, 2, 3]}, size=2, seed=None).epoch(0)]
    [[1, 2], [3]]
    """

    def __init__(self, data: Data, size: int, seed: int | None) -> None:
        """Take data; `seed` decides the order, None keeps it. Raises FeedError for uneven arrays."""
        if size < 1:
            raise UnsupportedError(f"a batch has 1 sample or more; got {size}")
        self._size, self._seed = size, seed
        self._arrays = _arrays(cast("Mapping[str, Any]", data)) if isinstance(data, Mapping) else None
        self._iterable = cast("Iterable[Batch]", data)
        self._count = len(next(iter(self._arrays.values()))) if self._arrays else 0

    @property
    def count(self) -> int:
        """The number of batches of an epoch, 0 where it is not known."""
        if self._arrays is not None:
            return (self._count + self._size - 1) // self._size
        length = getattr(self._iterable, "__len__", None)
        return 0 if length is None else int(length())

    @property
    def is_iterator(self) -> bool:
        """Whether the data can be iterated only once."""
        return self._arrays is None and isinstance(self._iterable, Iterator)

    def epoch(self, number: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from the batch number `first` on."""
        if self._arrays is None:
            for index, batch in enumerate(self._iterable):
                if not isinstance(batch, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - from anywhere
                    raise FeedError(f"a batch is a dict of feeds by input name; got {type(batch).__name__}")
                if index >= first:
                    yield batch
            return
        order = None
        if self._seed is not None:
            order = np.random.default_rng((self._seed, _SHUFFLING, number)).permutation(self._count)
        for start in range(first * self._size, self._count, self._size):
            stop = start + self._size
            part = slice(start, stop) if order is None else order[start:stop]
            yield {name: array[part] for name, array in self._arrays.items()}


def _arrays(data: Mapping[str, Any]) -> dict[str, Array]:
    arrays = {name: np.asarray(value) for name, value in data.items()}
    if not arrays or any(a.ndim == 0 or not len(a) for a in arrays.values()):
        raise FeedError("training data are arrays by input name, each with one sample or more")
    name, first = next(iter(arrays.items()))
    other = next((n for n, a in arrays.items() if len(a) != len(first)), None)
    if other is not None:
        raise FeedError(
            f"{quote(name)} has {len(first)} samples, and {quote(other)} has {len(arrays[other])}"
        )
    return arrays


__all__ = ["Batches", "Data"]
