"""Files as bytes: small ones read, large ones mapped, and what a map must watch for."""

from __future__ import annotations

import mmap
import os
import stat
from typing import TYPE_CHECKING

from sabir.base._errors import FileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
READING = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
PIECE = 1 << 20  # how many bytes are held at a time where a file is read through
_WORTH_MAPPING = 1 << 23  # a smaller file is read: that takes a millisecond, and then it is safe


class MappedFile(mmap.mmap):
    """A file mapped for reading.

    Memory that is mapped from a file ends where the file does: to touch what was cut off ends the process.
    So whoever is about to read from a map asks `still_whole` first, or takes `pieces`, which are read and not
    mapped.
    """

    name: str
    descriptor: int

    @classmethod
    def of(cls, descriptor: int, name: str) -> MappedFile:
        """Map an open file, which is not empty; the descriptor may be closed afterwards."""
        made = cls(descriptor, 0, access=mmap.ACCESS_READ)
        made.name, made.descriptor = name, os.dup(descriptor)
        return made

    def __del__(self) -> None:
        descriptor = getattr(self, "descriptor", None)
        if descriptor is not None:
            os.close(descriptor)

    def require_whole(self) -> None:
        """Raise FileError where the file has become shorter since it was mapped."""
        size = os.fstat(self.descriptor).st_size
        if size < len(self):
            raise FileError(f"{self.name}: the file had {len(self)} bytes when it was opened, and has {size}")

    def pieces(self, start: int, size: int) -> Iterator[bytes]:
        """Read a range of the file in pieces; raises FileError where it has become shorter."""
        return pieces_of(self.descriptor, start, size, self.name)


class Streamed:
    """Bytes that are read when they are written: a length, and what gives the pieces."""

    __slots__ = ("_make", "_size")

    def __init__(self, size: int, make: Callable[[], Iterator[bytes | memoryview]]) -> None:
        self._size, self._make = size, make

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes | memoryview]:
        return self._make()


def map_file(path: Path, *, mapped: bool = True) -> memoryview:
    """Return the bytes of a file: mapped where it is large and `mapped` allows it, else read.

    Raises FileError for a file that is missing, no regular file, or not to be read.
    """
    try:
        descriptor = os.open(path, READING)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {reason(error)}") from error
    try:
        return view_of(descriptor, str(path), mapped=mapped)
    finally:
        os.close(descriptor)


def view_of(descriptor: int, name: str, *, mapped: bool = True) -> memoryview:
    """Return the bytes of an open file; the descriptor may be closed afterwards."""
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{name}: this is a directory, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{name}: this is no regular file")
    if not mapped or status.st_size < _WORTH_MAPPING:
        return memoryview(b"".join(pieces_of(descriptor, 0, status.st_size, name, status.st_size)))
    try:
        return memoryview(MappedFile.of(descriptor, name))
    except OSError as error:
        raise FileError(f"{name}: {reason(error)}") from error


def pieces_of(descriptor: int, start: int, size: int, name: str, piece: int = PIECE) -> Iterator[bytes]:
    """Read a range of an open file in pieces; raises FileError where the file ends before."""
    at, stop = start, start + size
    while at < stop:
        try:
            data = _read_at(descriptor, min(piece, stop - at), at)
        except OSError as error:
            raise FileError(f"{name}: {reason(error)}") from error
        if not data:
            raise FileError(f"{name}: the file ends at byte {at}, and {stop} are needed")
        at += len(data)
        yield data


def still_whole(data: bytes | memoryview) -> bytes | memoryview:
    """Return some data, after a look whether the file that it may be mapped from still has it."""
    held = data.obj if isinstance(data, memoryview) else None
    if isinstance(held, MappedFile):
        held.require_whole()
    return data


def reason(error: Exception) -> str:
    """Return why the system refused, in plain words."""
    match error:
        case FileNotFoundError():
            return "there is no such file"
        case PermissionError():
            return "permission denied"
        case IsADirectoryError():
            return "this is a directory, not a file"
        case OSError():
            return error.strerror or str(error)
        case _:
            return str(error)


def _read_at(descriptor: int, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)
