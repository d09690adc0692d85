"""Data with a number of samples that are read by number: arrays, data sets, parts of either."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from sabir.base import FeedError, UnsupportedError, listed_names, quote, suggest
from sabir.training._columns import columns_of
from sabir.training._image_folders import ImageFolder
from sabir.training._streams import Stream
from sabir.training._tables import Table, is_frame, read_arrays

if TYPE_CHECKING:
    from sabir.ir import Array
    from sabir.training._step_inputs import StepInputs

_SPLITTING = 3  # beside the random numbers of initializations, steps and the order of samples


class Source(Protocol):
    """Samples that are read by number."""

    def __len__(self) -> int:
        """Return the number of samples."""
        ...

    def take(self, places: Array, key: tuple[int, ...] | None) -> Mapping[str, Any]:
        """Return the feeds of some samples.

        Random changes of the samples depend on `key`, which is of a seed and an epoch; None: no changes.
        """
        ...


class Arrays:
    """Arrays by input name with one sample a row.

    >>> inputs = StepInputs([sabir.evaluation.ModelPort('x', sabir.ir.tensor_type('float', ['N']))])
    >>> Arrays({'x': [1.0, 2.0, 3.0]}, inputs).take(np.array([2, 0]), None)['x']
    array([3., 1.], dtype=float32)
    """

    def __init__(self, data: Mapping[str, Any], inputs: StepInputs, what: str = "the data") -> None:
        """Take arrays; raises FeedError for uneven ones, and for those that do not fit the inputs."""
        arrays = {name: np.asarray(inputs.value(name, value)) for name, value in data.items()}
        if not arrays or any(a.ndim == 0 or not len(a) for a in arrays.values()):
            raise FeedError("training data are arrays by input name, each with one sample or more")
        name, first = next(iter(arrays.items()))
        other = next((n for n, a in arrays.items() if len(a) != len(first)), None)
        if other is not None:
            raise FeedError(
                f"{quote(name)} has {len(first)} samples, and {quote(other)} has {len(arrays[other])}"
            )
        inputs.check(arrays, what)
        self._arrays, self._count = arrays, len(first)

    def __len__(self) -> int:
        return self._count

    def take(self, places: Array, key: tuple[int, ...] | None) -> Mapping[str, Any]:
        """Return the rows of the arrays."""
        del key
        return {name: array[places] for name, array in self._arrays.items()}


class Rows:
    """A data set of Hugging Face, or an object like it: `data[[2, 0]]` is a dict of columns."""

    def __init__(self, data: Any, inputs: StepInputs) -> None:
        """Take the columns with the names of inputs; raises FeedError where one is missing."""
        self._data, self._inputs = data, inputs
        columns = [str(name) for name in data.column_names]
        missing = next((name for name in inputs.required if name not in columns), None)
        if missing is not None:
            hint = suggest(missing, columns) or f"; its columns are {listed_names(columns)}"
            raise FeedError(f"the data set has no column {quote(missing)}, which the steps read{hint}")
        self._names = [name for name in columns if name in inputs.ports]

    def __len__(self) -> int:
        return len(self._data)

    def take(self, places: Array, key: tuple[int, ...] | None) -> Mapping[str, Any]:
        """Return the columns of some rows."""
        del key
        rows = self._data[places.tolist()]
        return {name: self._inputs.value(name, rows[name]) for name in self._names}


class Part:
    """Some samples of a source."""

    def __init__(self, whole: Source, places: Array) -> None:
        self._whole, self._places = whole, places

    def __len__(self) -> int:
        return len(self._places)

    def take(self, places: Array, key: tuple[int, ...] | None) -> Mapping[str, Any]:
        """Return samples by their number in this part."""
        return self._whole.take(self._places[places], key)


def source_of(data: Any, inputs: StepInputs, what: str = "the data") -> Source | Stream:
    """Return the samples, or the batches, of what `fit` takes for data; raises FeedError, FileError.

    >>> inputs = StepInputs([sabir.evaluation.ModelPort('x', sabir.ir.tensor_type('float', ['N']))])
    >>> len(source_of({'x': [1.0, 2.0, 3.0]}, inputs))
    3
    """
    if isinstance(data, (str, os.PathLike)):
        return _source_of_path(Path(cast("str", data)), inputs, what)
    if isinstance(data, ImageFolder):
        return data.source(inputs)
    if isinstance(data, Table):
        return Arrays(columns_of(data.columns, inputs, data.origin), inputs, data.origin)
    if is_frame(data):
        return Arrays(columns_of(read_arrays(data), inputs, what), inputs, what)
    if isinstance(data, Mapping):
        return Arrays(cast("Mapping[str, Any]", data), inputs, what)
    if isinstance(data, tuple):
        return Arrays(inputs.named(cast("tuple[Any, ...]", data)), inputs, what)
    if hasattr(data, "with_format") and hasattr(data, "__len__"):
        return Rows(data, inputs)
    return Stream(data, inputs)


def split(source: Source | Stream, share: float, seed: int) -> tuple[Source, Source]:
    """Return two parts of a source: the samples to train with, and a share for validation that `seed` draws.

    Raises UnsupportedError for a stream, whose samples have no numbers, and a part without samples.
    """
    if isinstance(source, Stream):
        raise UnsupportedError(
            "a share of an iterable cannot be set apart for validation; pass arrays, a file or a data set"
        )
    count = len(source)
    held = round(count * share)
    if not 0 < held < count:
        raise UnsupportedError(f"validate={share} sets {held} of {count} samples apart for validation")
    order = np.random.default_rng((seed, _SPLITTING)).permutation(count)
    return Part(source, np.sort(order[held:])), Part(source, np.sort(order[:held]))


def _source_of_path(path: Path, inputs: StepInputs, what: str) -> Source:
    if path.is_dir():
        return ImageFolder(path).source(inputs)
    arrays = read_arrays(path)
    if path.suffix.lower() == ".npz":
        return Arrays(arrays, inputs, what)
    return Arrays(columns_of(arrays, inputs, str(path)), inputs, what)


__all__ = ["Source", "source_of", "split"]
