"""Calibration data: feeds that an iterable yields, or those in .npz files."""

from __future__ import annotations

import os
import zipfile
import zlib
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import FeedError, FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sabir.ir import Array
    from sabir.quantization._ranges import Observed

_ARCHIVE = ".npz"


class Feeds:
    """Feeds of several runs; `count` is their number, 0 where that is not known.

    `observed` has what calibration has found with these feeds, by the names of values.

    >>> feeds = Feeds([{'x': np.zeros(2)}], 1)
    >>> feeds.count, [list(feed) for feed in feeds]
    (1, ['x'])
    """

    def __init__(self, source: Iterable[Mapping[str, Any]], count: int) -> None:
        self._source = source
        self.count = count
        self.observed: dict[str, Observed] = {}

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._source)

    def first(self, count: int) -> Feeds:
        """Return the first feeds, which are then in memory."""
        found = list(islice(self, count))
        return Feeds(found, len(found))


def feeds_of(calibration: Iterable[Mapping[str, Any]] | str | os.PathLike[str]) -> Feeds:
    """Return the feeds of an iterable, of a .npz file, or of all .npz files of a folder in order of names.

    A file has the arrays of one run; of a folder one file is in memory at a time. Raises FileError for
    a path that is missing or a folder without such files.

    >>> feeds_of([{'x': np.zeros(2)}]).count
    1
    """
    if not isinstance(calibration, (str, os.PathLike)):
        length = getattr(calibration, "__len__", None)
        return Feeds(calibration, 0 if length is None else int(length()))
    path = Path(os.fspath(calibration))
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix.lower() == _ARCHIVE)
        if not files:
            raise FileError(f"{path}: there is no {_ARCHIVE} file in this folder")
        return Feeds(_Archives(files), len(files))
    if not path.exists():
        raise FileError(f"{path}: there is no such file")
    return Feeds(_Archives([path]), 1)


class _Archives:
    """The arrays of files, read as they are iterated."""

    def __init__(self, files: list[Path]) -> None:
        self._files = files

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return map(_arrays, self._files)


def _arrays(path: Path) -> dict[str, Array]:
    try:
        loaded: object = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise FeedError(f"{path}: this is one array, not an archive of arrays by input name")
        archive = cast("Any", loaded)
        with archive:
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise FeedError(f"{path}: no archive of arrays can be read from this file: {error}") from error
