"""The bytes of files: small files are read, large ones mapped and watched for truncation."""

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
PIECE = 1 << 20  # bytes that are in memory at a time while a file is read through
MAX_SPARSE_RATIO = 16  # how many times the disk space of its file the data of tensors may take
_MAX_SEGMENTS = 1 << 14  # of a sparse file; the rest is taken to be like these
_SMALLEST_MAPPED = 1 << 23  # a smaller file is read in a millisecond, and cannot be truncated afterwards


class MappedFile(mmap.mmap):
    """A file mapped for reading.

    Mapped memory ends where the file does: an access beyond it ends the process. So code that is about to
    read from a map calls `untruncated` first, or reads the file with `pieces`.
    """

    name: str
    descriptor: int

    @classmethod
    def of(cls, descriptor: int, name: str) -> MappedFile:
        """Map an open file that is not empty; the descriptor may be closed afterwards."""
        mapped = cls(descriptor, 0, access=mmap.ACCESS_READ)
        mapped.name, mapped.descriptor = name, os.dup(descriptor)
        return mapped

    def __del__(self) -> None:
        descriptor = getattr(self, "descriptor", None)
        if descriptor is not None:
            os.close(descriptor)

    def require_untruncated(self) -> None:
        """Raise FileError where the file has become shorter since it was mapped."""
        size = os.fstat(self.descriptor).st_size
        if size < len(self):
            raise FileError(
                f"{self.name}: the file had {len(self)} bytes when it was opened, and now has {size}; "
                "load it again"
            )

    def pieces(self, start: int, size: int) -> Iterator[bytes]:
        """Read a range of the file in pieces; raises FileError where it has become shorter."""
        return pieces_of(self.descriptor, start, size, self.name)


class OpenFile:
    """A large file of which ranges are read on demand, as there was no room to map or read all of it."""

    def __init__(self, descriptor: int, name: str) -> None:
        """Take an open file; the descriptor may be closed afterwards."""
        self.name, self.descriptor = name, os.dup(descriptor)
        self._size = os.fstat(descriptor).st_size
        self._requested = 0

    def __del__(self) -> None:
        descriptor = getattr(self, "descriptor", None)
        if descriptor is not None:
            os.close(descriptor)

    def __len__(self) -> int:
        return self._size

    def part(self, start: int, stop: int) -> memoryview:
        """Read a range of the file.

        Raises FileError where the file has become shorter or there is no memory for so many bytes, and
        LimitError where overlapping ranges add up to far more than the disk space of the file.
        """
        self._requested += stop - start
        require_allocated(self.descriptor, self.name, self._requested)
        return _read(self.descriptor, self.name, start, stop)

    def pieces(self, start: int, size: int) -> Iterator[bytes]:
        """Read a range of the file in pieces; raises FileError where it has become shorter."""
        return pieces_of(self.descriptor, start, size, self.name)


class LazyBytes:
    """Bytes that are read while they are written: their number, and a function that reads them in pieces."""

    __slots__ = ("_pieces", "_size")

    def __init__(self, size: int, pieces: Callable[[], Iterator[bytes | memoryview]]) -> None:
        self._size, self._pieces = size, pieces

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes | memoryview]:
        return self._pieces()


def map_file(path: Path, *, mapped: bool = True) -> memoryview:
    """Return the bytes of a file: mapped where it is large and `mapped` is true, else read.

    Raises FileError for a file that is missing, not a regular file or not readable.
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
    """Return a path made absolute; raises FileError for one that no file can have."""
    try:
        if b"\0" in os.fsencode(path):
            raise FileError(f"{path}: a path cannot contain a null character")
        return path.absolute()
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {reason(error)}") from error


def view_of(descriptor: int, name: str, *, mapped: bool = True) -> memoryview:
    """Return the bytes of an open file; the descriptor may be closed afterwards.

    Raises FileError where it cannot be read, and LimitError where it would be read and is nearly all holes.
    """
    size = _regular_size(descriptor, name)
    mapping = _mapping(descriptor, name, size) if mapped else None
    if mapping is not None:
        return mapping
    require_allocated(descriptor, name, size)
    return _read(descriptor, name, 0, size)


def contents_of(descriptor: int, name: str, *, mapped: bool = True) -> memoryview | OpenFile:
    """Return the bytes of an open file, or where there is no room for them an object that reads ranges."""
    size = _regular_size(descriptor, name)
    if size < _SMALLEST_MAPPED:
        return _read(descriptor, name, 0, size)
    if mapped:
        return _mapping(descriptor, name, size) or OpenFile(descriptor, name)
    try:
        require_allocated(descriptor, name, size)
        return _read(descriptor, name, 0, size)
    except (LimitError, _NoRoomError):
        return OpenFile(descriptor, name)


def allocated_size(descriptor: int, size: int) -> int:
    """Return about how much disk space a file of `size` bytes occupies, without its holes.

    Where the system cannot tell, this is `size`.
    """
    if not hasattr(os, "SEEK_DATA"):
        return size
    allocated = at = 0
    try:
        for _ in range(_MAX_SEGMENTS):
            start = os.lseek(descriptor, at, os.SEEK_DATA)
            at = os.lseek(descriptor, start, os.SEEK_HOLE)
            allocated += at - start
            if at >= size:
                return allocated
    except OSError as error:
        return allocated if error.errno == errno.ENXIO else size  # ENXIO: the rest is a hole
    return allocated * size // at


def require_allocated(descriptor: int, name: str, size: int) -> None:
    """Raise LimitError where `size` bytes would be read from a file that is nearly all holes."""
    most = limits_in_force().constant_bytes
    if most is not None and size > most:
        allocated = allocated_size(descriptor, os.fstat(descriptor).st_size)
        check_constant(size, MAX_SPARSE_RATIO * allocated, what=f"{name}, which is nearly all holes,")


class _NoRoomError(FileError):
    """A file that is larger than the available memory."""


def _regular_size(descriptor: int, name: str) -> int:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{name}: this is a directory, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{name}: this is not a regular file")
    return status.st_size


def _mapping(descriptor: int, name: str, size: int) -> memoryview | None:
    """Map a large file; None for a small one, and where the system cannot."""
    if size < _SMALLEST_MAPPED:
        return None
    try:
        return memoryview(MappedFile.of(descriptor, name))
    except (OSError, ValueError):
        return None


def _read(descriptor: int, name: str, start: int, stop: int) -> memoryview:
    """Read a range of an open file; a large one piece by piece into one buffer."""
    size = stop - start
    if size < _SMALLEST_MAPPED:
        return memoryview(b"".join(pieces_of(descriptor, start, size, name, size)))
    try:
        buffer = bytearray(size)
    except MemoryError:
        raise _NoRoomError(f"{name}: there is not enough memory for {size:,} bytes") from None
    at = 0
    for piece in pieces_of(descriptor, start, size, name):
        buffer[at : at + len(piece)] = piece
        at += len(piece)
    return memoryview(buffer).toreadonly()


def pieces_of(descriptor: int, start: int, size: int, name: str, piece: int = PIECE) -> Iterator[bytes]:
    """Read a range of an open file in pieces; raises FileError where the file ends within it."""
    at, stop = start, start + size
    while at < stop:
        try:
            data = _read_at(descriptor, min(piece, stop - at), at)
        except OSError as error:
            raise FileError(f"{name}: {reason(error)}") from error
        if not data:
            raise FileError(f"{name}: the file ends at byte {at}, and must have {stop}")
        at += len(data)
        yield data


def untruncated(data: bytes | memoryview) -> bytes | memoryview:
    """Return `data`; raises FileError where it is mapped from a file that has become shorter since."""
    owner = data.obj if isinstance(data, memoryview) else None
    if isinstance(owner, MappedFile):
        owner.require_untruncated()
    return data


def reason(error: Exception) -> str:
    """Return why the system refused, in words."""
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
