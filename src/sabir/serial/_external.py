"""External data: tensors in files beside the model."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sabir.base import ExternalDataError, FileError, check_constant, check_time, limits_in_force, quote
from sabir.files import (
    MAX_SPARSE_RATIO,
    LazyBytes,
    MappedFile,
    OpenFile,
    absolute,
    allocated_size,
    contents_of,
    open_inside,
    pieces_of,
    require_allocated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from typing import Self

    from sabir.ir import ExternalTensor

Contents: TypeAlias = memoryview | OpenFile

_HUGE = 1 << 34  # bytes; of a larger file, only the disk space counts
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)


class Extent(NamedTuple):
    """Bytes `start` to `stop` of the file at `location`.

    >>> Extent('weights.data', 4096, 8192).size
    4096
    """

    location: str
    start: int
    stop: int

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.stop - self.start

    def check(self, size: int) -> None:
        """Raise ExternalDataError where a file of `size` bytes does not contain all of these."""
        if self.stop > size:
            needed = f"the tensor needs bytes {self.start} to {self.stop}"
            raise ExternalDataError(f"{_shown(self.location)}: {needed}, and the file has {size}")


class Folder:
    """Opens the external data of one model; each file is opened once, when first read.

    `path` is the folder of the path that the model was loaded from, None for a model without a path.

    >>> from pathlib import Path
    >>> Folder(Path('models')).path.name
    'models'
    """

    def __init__(self, path: Path | None, *, real: Path | None = None, mapped: bool = True) -> None:
        """Take the folder; `real` is the one that contains the model file, where `path` has a link to it.

        `mapped` says whether large files may be mapped.
        """
        self.path, self._real, self._mapped = path, real, mapped
        self._files: dict[str, Contents] = {}
        self._statuses: dict[str, os.stat_result] = {}
        self._versions: dict[tuple[int, ...], Contents] = {}
        self._source: tuple[str, Contents] | None = None

    @classmethod
    def of(cls, model: Path, *, mapped: bool = True, opened: os.stat_result | None = None) -> Self:
        """Return the folder of a model file; raises FileError for a path that no file can have.

        `opened` is the status of the file that was opened by this path. If the path leads to another file by
        now, the folder of that one is not used.
        """
        model = absolute(model)
        real = Path(os.path.realpath(model))
        if opened is not None and not _is_file(real, opened):
            return cls(model.parent, mapped=mapped)
        return cls(model.parent, real=real.parent, mapped=mapped)

    @functools.cached_property
    def real(self) -> Path | None:
        """The folder that contains the model file: not `path` where that has a link to the file."""
        if self._real is not None:
            return self._real
        return None if self.path is None else Path(os.path.realpath(self.path))

    def __call__(self, entries: Mapping[str, str], size: int) -> memoryview:
        """Return the `size` bytes at the place that a tensor's entries describe.

        Raises ExternalDataError where the file is missing, too short, or outside the folder.
        """
        extent = extent_of(entries, size)
        data = self.keep(extent.location)
        extent.check(len(data))
        if isinstance(data, memoryview):
            return data[extent.start : extent.stop]
        with _as_external_error():
            return data.part(extent.start, extent.stop)

    def keep(self, location: str) -> Contents:
        """Return all bytes of a file, and keep them whatever happens to the file; raises as a call does."""
        if location not in self._files:
            with self._opened(location) as descriptor:
                status = self._statuses[location] = os.fstat(descriptor)
                data = self._versions.get(_version(status))  # one file may have many names in a model
                if data is None:
                    data = contents_of(descriptor, _shown(location), mapped=self._mapped)
                self._files[location] = self._versions[_version(status)] = data
        return self._files[location]

    def stream(self, entries: Mapping[str, str], size: int) -> LazyBytes:
        """Return the bytes that a call would, which are read only as they are written, and not kept.

        Raises as a call does.
        """
        extent = extent_of(entries, size)
        extent.check(len(self._source_of(extent.location)))
        return LazyBytes(size, lambda: self._pieces(extent))

    def has_same(self, other: Folder) -> Callable[[str], bool]:
        """Return a function that says whether a model in another folder finds the same file at a location."""
        if (
            self.path is None
            or other.path is None
            or os.path.realpath(self.path) != os.path.realpath(other.path)
        ):
            return lambda _: False
        same_real = self.real == other.real

        @functools.cache
        def same(location: str) -> bool:
            status = self._statuses.get(location)
            if status is None and same_real:
                return True
            try:
                return _version(status or self.look(location)) == _version(other.look(location))
            except ExternalDataError:
                return False

        return same

    def look(self, location: str) -> os.stat_result:
        """Return the status of a file; raises ExternalDataError where it is missing or outside the folder."""
        with self._opened(location) as descriptor:
            return os.fstat(descriptor)

    def digest(self, location: str) -> str:
        """Return the SHA1 digest of a file, in hexadecimal digits.

        Raises as a call does, and LimitError where the file is large and nearly all holes, or the time is
        over.
        """
        import hashlib  # ruff: ignore[import-outside-top-level]  4 ms that few models need

        found = hashlib.sha1(usedforsecurity=False)
        with self._opened(location) as descriptor:
            size = os.fstat(descriptor).st_size
            require_allocated(descriptor, _shown(location), size)
            for piece in pieces_of(descriptor, 0, size, _shown(location)):
                found.update(piece)
                check_time()
        return found.hexdigest()

    def weight(self, location: str) -> tuple[tuple[int, ...], int]:
        """Return the identity of a file, and its size; for a huge one, the disk space that it occupies.

        Raises as a call does.
        """
        with self._opened(location) as descriptor:
            status = os.fstat(descriptor)
            size = status.st_size
            return _version(status), size if size < _HUGE else allocated_size(descriptor, size)

    def _source_of(self, location: str) -> Contents:
        """Return the bytes of a file that is streamed; one file at a time is kept open for this."""
        if location in self._files:
            return self._files[location]
        if self._source is None or self._source[0] != location:
            with self._opened(location) as descriptor:
                self._source = location, contents_of(descriptor, _shown(location))
        return self._source[1]

    def _pieces(self, extent: Extent) -> Iterator[bytes | memoryview]:
        data = self._source_of(extent.location)
        read = data if isinstance(data, OpenFile) else data.obj
        if isinstance(read, (OpenFile, MappedFile)):
            yield from read.pieces(extent.start, extent.size)
        elif isinstance(data, memoryview):
            yield data[extent.start : extent.stop]

    @contextlib.contextmanager
    def _opened(self, location: str) -> Generator[int, None, None]:
        if self.path is None:
            raise ExternalDataError(
                f"{_shown(location)}: the model was not loaded from a path; pass the `folder` of its data"
            )
        descriptor = open_inside(self.path, location, real=self.real)
        try:
            with _as_external_error():
                yield descriptor
        finally:
            os.close(descriptor)


class CopyCount:
    """Counts the external data that is copied: very many tensors may refer to the same bytes of a file."""

    def __init__(self, share: int = MAX_SPARSE_RATIO) -> None:
        """Start at 0; `share` is how often each byte of the files may be copied."""
        self._share, self._size = share, 0
        self._files: dict[tuple[Folder, str], None] = {}

    def add(self, tensor: ExternalTensor) -> None:
        """Count a tensor; raises LimitError where all need far more than the disk space of their files."""
        if not isinstance(tensor.opener, Folder):
            return
        entries, size = tensor.place()
        self._size += size
        self._files[tensor.opener, entries.get("location", "")] = None
        most = limits_in_force().constant_bytes
        if most is not None and self._size > most:
            weights = dict(folder.weight(location) for folder, location in self._files)
            check_constant(
                self._size, self._share * sum(weights.values()), what="the external data, tensor by tensor,"
            )


@contextlib.contextmanager
def _as_external_error() -> Generator[None, None, None]:
    """Turn a FileError into an ExternalDataError."""
    try:
        yield
    except FileError as error:
        raise ExternalDataError(str(error)) from error


def _is_file(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.lstat(), opened)
    except OSError:
        return False


def extent_of(entries: Mapping[str, str], size: int) -> Extent:
    """Return where the `size` bytes of a tensor are; raises ExternalDataError for invalid entries.

    >>> extent_of({'location': 'weights.data', 'offset': '4096'}, 64)
    Extent(location='weights.data', start=4096, stop=4160)
    """
    location = entries.get("location", "")
    offset, length = _number(entries, "offset", 0), _number(entries, "length", size)
    if length != size:
        raise ExternalDataError(
            f"{_shown(location)}: `length` is {length}, and the tensor's type and shape take {size} bytes"
        )
    return Extent(location, offset, offset + size)


def _number(entries: Mapping[str, str], key: str, default: int) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text):
        raise ExternalDataError(
            f"external data: `{key}` must be a number of up to 19 digits, and is {quote(text)}"
        )
    return int(text)


def _version(status: os.stat_result) -> tuple[int, ...]:
    """Return what distinguishes a file from others, and from its own later versions."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _shown(location: str) -> str:
    return f"external data {quote(location)}"
