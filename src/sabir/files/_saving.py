"""Files written whole or not at all: to a temporary file first, which then takes the name."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from sabir.base import FileError
from sabir.files._folders import HeldFolder
from sabir.files._reading import PIECE, Streamed, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    Chunk = bytes | memoryview | Streamed

_GATHERED = 1 << 16  # smaller chunks are put together before they are written
_CREATING = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_LONGEST_STEM = 48  # characters of the name that a temporary one shows; each may take four bytes of 255


class NewFile:
    """A file in the making, under a temporary name until `take` gives it its own."""

    def __init__(self, folder: HeldFolder, name: str) -> None:
        """Prepare a file that will stand in `folder`; `name` shows whose it is where a kill leaves it."""
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
    ) -> None:
        """Write all chunks, and wait until they are on the disk; raises OSError.

        `written` is told the size of each piece, `digest` given every byte after it was written.
        """
        descriptor = self.folder.open(self.name, _CREATING)
        try:
            status = os.fstat(descriptor)
            self._identity = status.st_dev, status.st_ino
            size = _write(descriptor, chunks, written or _ignore)
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
            if digest is not None:
                os.lseek(descriptor, 0, os.SEEK_SET)
                for _ in range(0, size, PIECE):
                    digest(os.read(descriptor, PIECE))
        finally:
            os.close(descriptor)

    def take(self, name: str) -> None:
        """Take a name, in the place of what has it; raises OSError."""
        self.folder.rename(self.name, name)
        self.name = name

    # An interrupt may come between any two steps, so what follows asks the disk how far things went.

    def discard(self) -> None:
        """Remove the file where it has no name of its own yet."""
        with contextlib.suppress(OSError):
            self.folder.remove(self._temporary)

    def has(self, name: str) -> bool:
        """Whether this file, and no other one, has a name now."""
        status = self.folder.status(name)
        return status is not None and (status.st_dev, status.st_ino) == self._identity

    def withdraw(self, name: str) -> None:
        """Remove the file where it has taken this name."""
        with contextlib.suppress(OSError):
            if self.has(name):
                self.folder.remove(name)


def replace_file(
    path: Path, chunks: Iterable[Chunk], *, written: Callable[[int], None] | None = None
) -> None:
    """Write a file in one step: at any moment the path holds the old bytes or all of the new ones.

    Where the path is a link, the file that it leads to is replaced. `written` is told the size of each piece.
    Raises FileError, and leaves no litter, where writing fails; so does an interrupt.
    """
    target = writable(path)
    try:  # ruff: ignore[too-many-statements-in-try-clause]  one story, and any step of it may fail
        with HeldFolder(target.parent) as folder:
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
    """Return a name that nothing has, for what will be called `name`."""
    return f".{name[:_LONGEST_STEM]}.{os.urandom(8).hex()}.tmp"


def writable(path: Path) -> Path:
    """Return where a file written to `path` will stand; raises FileError where none can."""
    try:
        target = path.resolve()
        status = target.stat() if target.exists() else None
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(f"{path}: {reason(error)}") from error
    if not target.parent.is_dir():
        raise FileError(f"{path}: there is no folder {target.parent}")
    if status is not None and not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise FileError(f"{path}: this is {kind}, and is not replaced by a file")
    return target


def _write(descriptor: int, chunks: Iterable[Chunk], written: Callable[[int], None]) -> int:
    """Write chunks; a mapped file that has become shorter is an error of the system's, and no crash."""
    gathered: list[bytes | memoryview] = []
    waiting = total = 0

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
        if waiting and (waiting >= _GATHERED or len(chunk) >= _GATHERED or isinstance(chunk, Streamed)):
            put(b"".join(gathered))
            gathered, waiting = [], 0
        if isinstance(chunk, Streamed):
            before = total
            for piece in chunk:
                put(piece)
            if total - before != len(chunk):
                raise OSError(f"{len(chunk)} bytes were to be written, and there were {total - before}")
        elif len(chunk) >= _GATHERED:
            put(chunk)
        else:
            gathered.append(chunk)
            waiting += len(chunk)
    put(b"".join(gathered))
    return total


def _ignore(_size: int) -> None:
    pass


def _mode(target: Path) -> int | None:
    """The permissions that a new file at `target` gets: the old file's, or None for the usual ones."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        return None
