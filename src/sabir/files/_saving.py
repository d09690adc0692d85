"""Files written completely or not at all: to a temporary file, which is then renamed."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from sabir.base import FileError
from sabir.files._folders import OpenFolder
from sabir.files._reading import PIECE, LazyBytes, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    Chunk = bytes | memoryview | LazyBytes

_SMALLEST_WRITE = 1 << 16  # smaller chunks are joined before they are written
_CREATING = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_MAX_STEM = 48  # characters of the final name in the temporary one; each may take four bytes of 255


class NewFile:
    """A file that is being written, under a temporary name until `take` gives it its final one."""

    def __init__(self, folder: OpenFolder, name: str) -> None:
        """Prepare a file in `folder`; its temporary name contains `name`, in case a kill leaves it there."""
        self.folder = folder
        self.name = self._temporary = temporary_name(name)
        self._identity: tuple[int, int] | None = None

    def write(
        self,
        chunks: Iterable[Chunk],
        *,
        mode: int | None = None,
        written: Callable[[int], None] | None = None,
        digest: Callable[[bytes], object] | None = None,
        sync: bool = True,
    ) -> None:
        """Write all chunks, and with `sync` wait until they are on the disk; raises OSError.

        `written` is called with the size of each piece, `digest` with all bytes, read back from the file.
        """
        descriptor = self.folder.open(self.name, _CREATING)
        try:
            status = os.fstat(descriptor)
            self._identity = status.st_dev, status.st_ino
            size = _write(descriptor, chunks, written or _ignore)
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)
            if sync:
                os.fsync(descriptor)
            if digest is not None:
                os.lseek(descriptor, 0, os.SEEK_SET)
                for _ in range(0, size, PIECE):
                    digest(os.read(descriptor, PIECE))
        finally:
            os.close(descriptor)

    def take(self, name: str) -> None:
        """Take a name, replacing the file that has it; raises OSError."""
        self.folder.rename(self.name, name)
        self.name = name

    # An interrupt may come between any two steps, so these methods ask the disk how far the save went.

    def discard(self) -> None:
        """Remove the file where it still has its temporary name."""
        with contextlib.suppress(OSError):
            self.folder.remove(self._temporary)

    def has(self, name: str) -> bool:
        """Return whether this file, and no other one, has a name now."""
        status = self.folder.status(name)
        return status is not None and (status.st_dev, status.st_ino) == self._identity

    def withdraw(self, name: str) -> None:
        """Remove the file where it has this name."""
        with contextlib.suppress(OSError):
            if self.has(name):
                self.folder.remove(name)


def replace_file(
    path: Path, chunks: Iterable[Chunk], *, written: Callable[[int], None] | None = None
) -> None:
    """Write a file in one step: at any moment the path holds the old bytes or all of the new ones.

    Where the path is a link, its target is replaced. `written` is called with the size of each piece. Where
    writing fails, this raises FileError and removes the temporary file, as an interrupt does.
    """
    target = writable(path)
    try:  # ruff: ignore[too-many-statements-in-try-clause]  any of these steps may fail
        with OpenFolder(target.parent) as folder:
            new = NewFile(folder, target.name)
            try:
                new.write(chunks, mode=_mode(target), written=written)
                new.take(target.name)
                folder.sync()
            finally:
                new.discard()
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}; the old file, if any, is as it was") from error


def temporary_name(name: str) -> str:
    """Return a name that no file has, for a file that will be called `name`."""
    return f".{name[:_MAX_STEM]}.{os.urandom(8).hex()}.tmp"


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file, None if there is none; raises OSError for a link in a loop."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def writable(path: Path) -> Path:
    """Return the resolved path of a file to be written; raises FileError where none can be written there."""
    try:
        target = path.resolve()
        status = _status(target)
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(f"{path}: {reason(error)}") from error
    if not target.parent.is_dir():
        raise FileError(f"{path}: there is no folder {target.parent}; create it first")
    if status is not None and not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise FileError(f"{path}: this is {kind}, and cannot be replaced by a file")
    return target


def _write(descriptor: int, chunks: Iterable[Chunk], written: Callable[[int], None]) -> int:
    """Write chunks, and return how many bytes they have; raises OSError where a mapped file was truncated."""
    waiting: list[bytes | memoryview] = []
    size = total = 0

    def put(data: bytes | memoryview) -> None:
        nonlocal total
        for at in range(0, len(data), PIECE):
            piece = memoryview(data)[at : at + PIECE]
            while len(piece):
                done = os.write(descriptor, piece)
                piece = piece[done:]
                total += done
                written(done)

    for chunk in chunks:
        is_small = len(chunk) < _SMALLEST_WRITE and not isinstance(chunk, LazyBytes)
        if waiting and (size >= _SMALLEST_WRITE or not is_small):
            put(b"".join(waiting))
            waiting, size = [], 0
        if isinstance(chunk, LazyBytes):
            before = total
            for piece in chunk:
                put(piece)
            if total - before != len(chunk):
                raise OSError(f"{len(chunk)} bytes were expected, and {total - before} read")
        elif not is_small:
            put(chunk)
        else:
            waiting.append(chunk)
            size += len(chunk)
    put(b"".join(waiting))
    return total


def _ignore(_size: int) -> None:
    pass


def _mode(target: Path) -> int | None:
    """Return the permissions of the file at `target`, or None where there is none."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        return None
