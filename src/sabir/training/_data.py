"""Batches of training data: samples in an order that the seed decides, or what an iterable yields."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from sabir.base import FeedError, UnsupportedError
from sabir.evaluation import warn
from sabir.training._image_folders import ImageFolder
from sabir.training._streams import Stream
from sabir.training._tables import Table

if TYPE_CHECKING:
    from sabir.training._sources import Source
    from sabir.training._step_inputs import StepInputs

Data: TypeAlias = (
    Mapping[str, Any]
    | tuple[Any, ...]
    | Iterable[Any]
    | Callable[[], Iterable[Any]]
    | str
    | os.PathLike[str]
    | ImageFolder
    | Table
)
"""What `fit` takes for data."""

_SHUFFLING = 2  # beside the random numbers of initializations and steps


class Batch(NamedTuple):
    """The feeds of a step, and how many samples of them count."""

    feeds: Mapping[str, Any]
    samples: int


class Cutting(NamedTuple):
    """How samples become batches.

    A batch has `size` samples. `rest` is what becomes of one with fewer: it is kept, padded with samples that
    count for nothing, or left out; `reason` is why it is left out where nobody asked for that. `shuffle` is
    whether the order is random, or the samples in the window of a stream. Samples that a source changes at
    random are changed where the batches are for `training`.
    """

    size: int
    rest: Literal["keep", "pad", "drop"] = "keep"
    shuffle: bool | int = False
    is_fixed: bool = False
    training: bool = True
    reason: str = ""


class Batches:
    """The batches of every epoch.

    >>> from sabir.training._sources import Arrays
    >>> inputs = StepInputs([sabir.evaluation.ModelPort('x', sabir.ir.tensor_type('float', ['N']))])
    >>> batches = Batches(Arrays({'x': [1, 2, 3]}, inputs), inputs, Cutting(2), seed=0)
    >>> [b.feeds['x'].tolist() for b in batches.epoch(0)]
    [[1.0, 2.0], [3.0]]
    """

    def __init__(self, source: Source | Stream, inputs: StepInputs, cutting: Cutting, seed: int) -> None:
        """Take samples or batches; `seed` decides the order. Raises UnsupportedError, FeedError."""
        if cutting.size < 1:
            raise UnsupportedError(f"a batch has 1 sample or more; got {cutting.size}")
        self._source, self._inputs, self._cutting, self._seed = source, inputs, cutting, seed
        self._has_warned = False
        if cutting.rest == "drop" and not isinstance(source, Stream) and len(source) < cutting.size:
            raise FeedError(
                f"the data has {len(source)} samples, fewer than a batch, which has {cutting.size}"
            )

    @property
    def count(self) -> int:
        """The number of batches of an epoch, 0 where it is not known."""
        if isinstance(self._source, Stream):
            return 0 if self._window else self._source.count
        more = 0 if self._cutting.rest == "drop" else self._cutting.size - 1
        return (len(self._source) + more) // self._cutting.size

    @property
    def is_iterator(self) -> bool:
        """Whether the data can be iterated only once."""
        return isinstance(self._source, Stream) and self._source.is_iterator

    def epoch(self, number: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from the batch number `first` on; raises FeedError for the first."""
        source = self._source
        if isinstance(source, Stream):
            found = self._streamed(source, number, first)
        else:
            found = self._cut(source, number, first)
        for index, batch in enumerate(found):
            if not index:
                self._inputs.check(batch.feeds)
            yield batch

    @property
    def _window(self) -> int:
        """How many samples of a stream are shuffled at a time; 0: none."""
        shuffle = self._cutting.shuffle
        return 0 if isinstance(shuffle, bool) else shuffle

    def _cut(self, source: Source, number: int, first: int) -> Iterator[Batch]:
        size, count, shuffles = self._cutting.size, len(source), bool(self._cutting.shuffle)
        key = (self._seed, _SHUFFLING, number)
        order = np.random.default_rng(key).permutation(count) if shuffles else np.arange(count)
        for start in range(first * size, count, size):
            places = order[start : start + size]
            batch = self._whole(source.take(places, key if self._cutting.training else None), len(places))
            if batch is not None:
                yield batch

    def _streamed(self, source: Stream, number: int, first: int) -> Iterator[Batch]:
        size = self._cutting.size
        key = (self._seed, _SHUFFLING, number)
        found = source.shuffled(size, self._window, key) if self._window else source.batches(size)
        batches = (self._whole(feeds, self._inputs.samples(feeds)) for feeds in found)
        yield from itertools.islice((batch for batch in batches if batch is not None), first, None)

    def _whole(self, feeds: Mapping[str, Any], count: int) -> Batch | None:
        """Return a batch of the size that steps need, None where it is left out; raises FeedError."""
        size, rest = self._cutting.size, self._cutting.rest
        if self._cutting.is_fixed and count > size:
            raise FeedError(f"a batch has {count} samples, and the inputs of the model have {size}")
        if count >= size or rest == "keep":
            return Batch(feeds, count)
        if rest == "pad":
            return Batch(self._inputs.padded(feeds, size), count)
        if self._cutting.reason and isinstance(self._source, Stream) and not self._has_warned:
            self._has_warned = True
            warn(
                f"the inputs fix the batch at {size} samples, so batches with fewer are left out: "
                f"{self._cutting.reason}"
            )
        return None


__all__ = ["Batch", "Batches", "Cutting", "Data"]
