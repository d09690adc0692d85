"""Files as bytes: small ones read, large ones mapped, and what a map must watch for."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from typing import TYPE_CHECKING

from sabir.base import FileError, LimitError, check_constant, limits_in_force

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
READING = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
PIECE = 1 << 20  # how many bytes are held at a time where a file is read through
MAX_SPARSE_RATIO = 16  # how many times what its file holds data may take before it counts as made of nothing
_MOST_STRETCHES = 1 << 14  # of a file with holes, after which the rest is taken to be like them
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


class OpenFile:
    """A large file that is read where it is asked for: there was no room to map it, or to read all of it."""

    def __init__(self, descriptor: int, name: str) -> None:
        """Take an open file; the descriptor may be closed afterwards."""
        self.name, self.descriptor = name, os.dup(descriptor)
        self._size = os.fstat(descriptor).st_size
        self._taken = 0

    def __del__(self) -> None:
        descriptor = getattr(self, "descriptor", None)
        if descriptor is not None:
            os.close(descriptor)

    def __len__(self) -> int:
        return self._size

    def part(self, start: int, stop: int) -> memoryview:
        """Read a range of the file.

        Raises FileError where the file has become shorter, or where there is no room for so many bytes, and
        LimitError where ranges that overlap come to far more than the file holds.
        """
        self._taken += stop - start
        require_held(self.descriptor, self.name, self._taken)
        return _read(self.descriptor, self.name, start, stop)

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
    descriptor = open_file(path)
    try:
        return view_of(descriptor, str(path), mapped=mapped)
    finally:
        os.close(descriptor)


def open_file(path: Path) -> int:
    """Open a file for reading, and return its descriptor; raises FileError."""
    try:
        return os.open(path, READING)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {reason(error)}") from error


def absolute(path: Path) -> Path:
    """Return where a path leads from the present folder; raises FileError for what can be no path."""
    try:
        if b"\0" in os.fsencode(path):
            raise FileError(f"{path}: a path has no null character")
        return path.absolute()
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {reason(error)}") from error


def view_of(descriptor: int, name: str, *, mapped: bool = True) -> memoryview:
    """Return the bytes of an open file; the descriptor may be closed afterwards.

    Raises FileError where it cannot be read, and LimitError where it would have to be read and is nearly all
    holes.
    """
    size = _regular_size(descriptor, name)
    found = _mapping(descriptor, name, size) if mapped else None
    if found is not None:
        return found
    require_held(descriptor, name, size)
    return _read(descriptor, name, 0, size)


def contents_of(descriptor: int, name: str, *, mapped: bool = True) -> memoryview | OpenFile:
    """Return the bytes of an open file, where there is room for all of them, or else what reads them."""
    size = _regular_size(descriptor, name)
    if size < _WORTH_MAPPING:
        return _read(descriptor, name, 0, size)
    if mapped:
        return _mapping(descriptor, name, size) or OpenFile(descriptor, name)
    try:
        require_held(descriptor, name, size)
        return _read(descriptor, name, 0, size)
    except (LimitError, _NoRoomError):
        return OpenFile(descriptor, name)


def held_size(descriptor: int, size: int) -> int:
    """Return about how many bytes of a file the disk holds: to what it says of its length, holes add nothing.

    Where the system does not tell, that is all.
    """
    if not hasattr(os, "SEEK_DATA"):
        return size
    held = at = 0
    try:
        for _ in range(_MOST_STRETCHES):
            start = os.lseek(descriptor, at, os.SEEK_DATA)
            at = os.lseek(descriptor, start, os.SEEK_HOLE)
            held += at - start
            if at >= size:
                return held
    except OSError as error:
        return held if error.errno == errno.ENXIO else size  # ENXIO: nothing but a hole up to the end
    return held * size // at


def require_held(descriptor: int, name: str, size: int) -> None:
    """Raise LimitError where `size` bytes are to be read from a file that is nearly all holes."""
    most = limits_in_force().constant_bytes
    if most is not None and size > most:
        held = held_size(descriptor, os.fstat(descriptor).st_size)
        check_constant(size, MAX_SPARSE_RATIO * held, what=f"{name}, which is nearly all holes,")


class _NoRoomError(FileError):
    """A file that is larger than the memory that there is."""


def _regular_size(descriptor: int, name: str) -> int:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{name}: this is a directory, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{name}: this is no regular file")
    return status.st_size


def _mapping(descriptor: int, name: str, size: int) -> memoryview | None:
    """Map a file, if that is worth it and the system can."""
    if size < _WORTH_MAPPING:
        return None
    try:
        return memoryview(MappedFile.of(descriptor, name))
    except (OSError, ValueError):
        return None


def _read(descriptor: int, name: str, start: int, stop: int) -> memoryview:
    """Read a range of an open file, large ones in place."""
    size = stop - start
    if size < _WORTH_MAPPING:
        return memoryview(b"".join(pieces_of(descriptor, start, size, name, size)))
    try:
        made = bytearray(size)
    except MemoryError:
        raise _NoRoomError(f"{name}: there is no memory for {size:,} bytes") from None
    at = 0
    for piece in pieces_of(descriptor, start, size, name):
        made[at : at + len(piece)] = piece
        at += len(piece)
    return memoryview(made).toreadonly()


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
