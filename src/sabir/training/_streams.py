"""Batches that an iterable yields, in its order or shuffled within a window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import FeedError

if TYPE_CHECKING:
    from sabir.training._step_inputs import StepInputs


class Stream:
    """The batches of an iterable, of a function that returns one, or of a streamed data set.

    >>> inputs = StepInputs([sabir.evaluation.ModelPort('x', sabir.ir.tensor_type('float', ['N']))])
    >>> [b['x'].tolist() for b in Stream([{'x': [1.0]}, ([2.0],)], inputs).batches(32)]
    [[1.0], [2.0]]
    """

    def __init__(self, data: Any, inputs: StepInputs) -> None:
        """Take the iterable; raises FeedError for what cannot be iterated."""
        self._data, self._inputs = data, inputs
        self.is_cut = _has(data, "iter") or _has(data, "iter_batches")
        """Whether the data makes batches of the size that it is asked for."""
        if not (isinstance(data, Iterable) or callable(data) or self.is_cut):
            raise FeedError(
                "training data are arrays by input name, a file, a data set, or an iterable of batches; got "
                f"{type(data).__name__}"
            )

    @property
    def is_iterator(self) -> bool:
        """Whether the batches can be read only once."""
        return isinstance(self._data, Iterator)

    @property
    def count(self) -> int:
        """The number of batches, 0 where it is not known."""
        length = None if self.is_cut else getattr(self._data, "__len__", None)
        return 0 if length is None else int(length())

    def batches(self, size: int) -> Iterator[Mapping[str, Any]]:
        """Yield the feeds of the batches from the first on; `size` is for a data set that makes them."""
        for batch in self._iterated(size):
            yield self._inputs.named(batch)

    def _columns(self, batches: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield the columns of a data set that are for inputs."""
        for batch in batches:
            yield {name: values for name, values in batch.items() if name in self._inputs.ports}

    def shuffled(self, size: int, window: int, key: tuple[int, ...]) -> Iterator[Mapping[str, Any]]:
        """Yield batches of `size` samples that are drawn at random from `window` samples at a time."""
        rng, waiting, drawn = np.random.default_rng(key), list[dict[str, Any]](), list[dict[str, Any]]()
        for feeds in self.batches(size):
            if any(np.ndim(value) == 0 for value in feeds.values()):
                raise FeedError("a batch with a feed that is one number has no samples to shuffle")
            for row in range(self._inputs.samples(feeds)):
                waiting.append({name: value[row] for name, value in feeds.items()})
                if len(waiting) > window:
                    place = int(rng.integers(len(waiting)))
                    waiting[place], waiting[-1] = waiting[-1], waiting[place]
                    drawn.append(waiting.pop())
                if len(drawn) == size:
                    yield _stacked(drawn)
                    drawn = []
        drawn += [waiting[place] for place in rng.permutation(len(waiting))]
        for start in range(0, len(drawn), size):
            yield _stacked(drawn[start : start + size])

    def _iterated(self, size: int) -> Iterable[Any]:
        data = self._data
        if _has(data, "iter_batches"):  # a data set of Ray Data
            return self._columns(data.iter_batches(batch_size=size, batch_format="numpy"))
        if _has(data, "iter"):  # a streamed data set of Hugging Face
            return self._columns(data.iter(batch_size=size))
        if isinstance(data, Iterable):
            return cast("Iterable[Any]", data)
        return cast("Callable[[], Iterable[Any]]", data)()


def _has(data: Any, method: str) -> bool:
    return callable(getattr(data, method, None))


def _stacked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


__all__ = ["Stream"]
