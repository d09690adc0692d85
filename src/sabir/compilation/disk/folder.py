"""The cache on disk: what was compiled or prepared once is found again by the next process.

Each kind of entry has a folder, each entry a file with a header that is verified. Nothing in it is needed:
what is missing, damaged or not readable is made again. Files are replaced in one step, so processes may write
at once.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import re
import stat
import time
from typing import TYPE_CHECKING

from sabir.base import FileError, SabirError, quote
from sabir.compilation.disk.entries import HEADER_SIZE, KEY_SIZE, MAX_KIND, CacheEntry, header_of, problem_of
from sabir.compilation.disk.places import FOLDER, place, unsafe, unsafe_file, warn_once
from sabir.files import READING, MappedFile, NewFile, OpenFolder, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

_LARGE = 1 << 20  # from here on data is mapped, on the disk before it is named, and verified on request only
_DAY, _HOUR = 86400, 3600
_SUFFIX = ".sabir"
_KIND = re.compile(rf"[a-z][a-z0-9-]{{0,{MAX_KIND - 1}}}")
_NAME = re.compile(rf"[0-9a-f]{{{2 * KEY_SIZE}}}{re.escape(_SUFFIX)}")
_TEMPORARY = re.compile(r"\.[0-9a-f]+\.[0-9a-f]{16}\.tmp")
_KEPT = 0.9  # of the bound, after entries were removed
_MOST = 1 << 14  # entries: so many are counted in a tenth of a second
_SHARE = 16  # of the bound: what a process writes before it counts again what others wrote


class Cache:
    """Entries on disk, each found by its kind and its key, a SHA-256 digest of all that the entry depends on.

    Without a folder nothing is kept, and else at most `limit` bytes: those used last. `get` and `put` raise
    nothing because of what is on the disk: a folder that is not safe or cannot be used is a SabirWarning,
    once.

    >>> from sabir.compilation.native import Cache
    >>> Cache(None).get('objects', bytes(32)) is None
    True
    """

    def __init__(self, folder: Path | None, limit: int = 1 << 30) -> None:
        self.folder, self.limit = folder, limit
        self._size: int | None = None  # bytes of all entries, as far as this process knows
        self._written = 0  # bytes written since they were counted

    def get(self, kind: str, key: bytes, *, verify: bool = False) -> memoryview | None:
        """Return the data of an entry, or None where there is none.

        It is read-only, and begins at a multiple of 64 bytes. From 1 MiB on it is mapped from the file, and
        its digest is compared with `verify` only. A damaged entry is removed.
        """
        name = _file_name(kind, key)
        with self._opened(kind) as folder:
            if folder is None:
                return None
            try:
                data = _data_of(folder, name, kind, verify=verify)
            except FileNotFoundError:
                return None
            except _DistrustError as error:
                warn_once(f"the entry {folder.path / name} of the cache is not used: {error}")
                return None  # it is written again, as a file of this user
            except (OSError, ValueError):  # what cannot be read is of no use to any process
                with contextlib.suppress(OSError):
                    folder.remove(name)
                return None
            return data

    def has(self, kind: str, key: bytes) -> bool:
        """Return whether there is an entry; it is not read, so it may be damaged or not to be trusted."""
        with self._opened(kind) as folder, contextlib.suppress(OSError):
            return folder is not None and folder.status(_file_name(kind, key)) is not None
        return False

    def put(self, kind: str, key: bytes, data: bytes | memoryview) -> bool:
        """Keep the data of an entry in place of what it had; returns whether it is kept."""
        name = _file_name(kind, key)
        size = HEADER_SIZE + len(data)
        if self.folder is None or size > self.limit:
            return False
        try:
            self._make(kind)
            with self._opened(kind) as folder:
                if folder is None:
                    return False
                _write(folder, name, [header_of(kind, key, data), data], sync=size >= _LARGE)
        except (FileExistsError, NotADirectoryError):
            self._warn("it is not a folder")
            return False
        except OSError as error:
            self._warn(reason(error))
            return False
        self._grow(size)
        return True

    def drop(self, kind: str, key: bytes) -> None:
        """Remove an entry, if it is there and can be removed."""
        with self._opened(kind) as folder, contextlib.suppress(OSError):
            if folder is not None:
                folder.remove(_file_name(kind, key))

    def entries(self) -> list[CacheEntry]:
        """Return all entries, those used last at the end."""
        return sorted(self._listed(_NAME), key=lambda entry: entry.used)

    def problems(self) -> Iterator[tuple[CacheEntry, str]]:
        """Yield each damaged entry, and what is wrong with it; this reads the whole cache."""
        for entry in self.entries():
            with self._opened(entry.kind) as folder:
                if folder is None:
                    continue
                try:
                    _data_of(folder, entry.name, entry.kind, verify=True)
                except FileNotFoundError:
                    continue  # another process has removed it
                except _DistrustError as error:
                    yield entry, str(error)
                except (OSError, ValueError) as error:
                    yield entry, reason(error)

    def clear(self) -> list[CacheEntry]:
        """Remove all entries, and return them; raises FileError where one cannot be removed."""
        removed = self.entries()
        for entry in [*removed, *self._listed(_TEMPORARY)]:
            try:
                self._remove(entry)
            except OSError as error:
                raise FileError(f"{self.folder}: {entry.name} cannot be removed: {reason(error)}") from error
        self._size = None
        return removed

    # ------------------------------------------------------------ the bound

    def _grow(self, size: int) -> None:
        """Count the bytes of a new entry, and remove old entries where there are too many."""
        self._written += size
        if self._size is not None:
            self._size += size
        if self._size is None or self._size > self.limit or self._written > self.limit // _SHARE:
            self._shrink()

    def _shrink(self) -> None:
        """Count all entries; where they are too many, remove those whose last use is longest ago."""
        entries = self.entries()
        size = sum(entry.size for entry in entries)
        count = len(entries)
        if size > self.limit or count > _MOST:
            for entry in entries[:-1]:
                if size <= self.limit * _KEPT and count <= _MOST * _KEPT:
                    break
                with contextlib.suppress(OSError):
                    self._remove(entry)
                    size, count = size - entry.size, count - 1
        for entry in self._listed(_TEMPORARY):  # of a process that was ended while it wrote
            if time.time() - entry.used > _HOUR:
                with contextlib.suppress(OSError):
                    self._remove(entry)
        self._size, self._written = size, 0

    def _listed(self, names: re.Pattern[str]) -> Iterator[CacheEntry]:
        """Yield the files in the folders of all kinds with such names."""
        with contextlib.ExitStack() as stack:
            root = self._root(stack)
            for kind in _names_in(root):
                if not _KIND.fullmatch(kind):
                    continue
                with self._opened(kind) as folder:
                    for name in _names_in(folder):
                        status = folder.status(name) if folder and names.fullmatch(name) else None
                        if status is not None:
                            yield CacheEntry(kind, name, status.st_size, status.st_mtime)

    def _remove(self, entry: CacheEntry) -> None:
        with self._opened(entry.kind) as folder:
            if folder is not None:
                with contextlib.suppress(FileNotFoundError):
                    folder.remove(entry.name)

    # ------------------------------------------------------------ folders

    def _make(self, kind: str) -> None:
        """Make the folder of a kind where there is none; raises OSError."""
        if self.folder is None:
            return
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self.folder, self.folder / kind):
            folder.mkdir(mode=0o700, exist_ok=True)

    @contextlib.contextmanager
    def _opened(self, kind: str) -> Generator[OpenFolder | None]:
        """Open the folder of a kind: None where there is none, or where it is not safe."""
        with contextlib.ExitStack() as stack:
            root = self._root(stack)
            yield None if root is None else self._checked(stack, lambda: root.inner(kind))

    def _root(self, stack: contextlib.ExitStack) -> OpenFolder | None:
        """Open the folder of the cache: None where there is none, or where it is not safe."""
        path = self.folder
        if path is None:
            return None
        try:
            is_link = path.is_symlink()
        except OSError as error:  # a name that is too long
            return self._warn(reason(error))
        if is_link:
            return self._warn("it is a link; name the folder that it leads to")
        return self._checked(stack, lambda: OpenFolder(path))

    def _checked(self, stack: contextlib.ExitStack, opened: Callable[[], OpenFolder]) -> OpenFolder | None:
        """Open a folder, and then look at what was opened."""
        try:
            folder = stack.enter_context(opened())
            status = folder.status(".")
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            return self._warn("it is not a folder")
        except OSError as error:
            return self._warn(reason(error))
        problem = unsafe(status) if status else "it was removed"
        return self._warn(problem) if problem else folder

    def _warn(self, problem: str) -> None:
        """Warn once that the folder is not used."""
        warn_once(
            f"compiled models are not cached in {self.folder}: {problem}. "
            f"Set {FOLDER} to another folder, or to off"
        )


class _DistrustError(Exception):
    """An entry that others may have written."""


def cache() -> Cache:
    """Return the cache in the folder that `SABIR_CACHE` names, else in the user's cache folder.

    `SABIR_CACHE_SIZE` bounds it. See docs/cache.md.

    >>> from sabir.compilation.disk import cache
    >>> cache().limit > 0
    True
    """
    return _cache(*place())


@functools.lru_cache(maxsize=8)
def _cache(folder: Path | None, limit: int) -> Cache:
    return Cache(folder, limit)


def _file_name(kind: str, key: bytes) -> str:
    if not _KIND.fullmatch(kind):
        raise SabirError(f"{quote(kind)} is no kind of entry: it has 1 to {MAX_KIND} of a-z, 0-9 and -")
    if len(key) != KEY_SIZE:
        raise SabirError(
            f"the key of an entry is a SHA-256 digest of {KEY_SIZE} bytes, and this has {len(key)}"
        )
    return key.hex() + _SUFFIX


def _names_in(folder: OpenFolder | None) -> list[str]:
    try:
        return [entry.name for entry in folder.path.iterdir()] if folder else []
    except OSError:
        return []


def _data_of(folder: OpenFolder, name: str, kind: str, *, verify: bool) -> memoryview:
    """Return the data of an entry.

    Raises _DistrustError where others may have written it, OSError, and ValueError where it is damaged.
    """
    descriptor = folder.open(name, READING)
    try:
        status = os.fstat(descriptor)
        distrust = unsafe_file(status)
        if distrust:
            raise _DistrustError(distrust)
        if not stat.S_ISREG(status.st_mode) or status.st_size < HEADER_SIZE:
            raise ValueError("it is truncated, or not a file")
        is_large = status.st_size >= _LARGE
        file = memoryview(MappedFile.of(descriptor, name) if is_large else _read(descriptor, status.st_size))
        key = bytes.fromhex(name.removesuffix(_SUFFIX))
        problem = problem_of(file, kind, key, verify=verify or not is_large)
        if problem:
            raise ValueError(problem)
        if time.time() - status.st_mtime > _DAY:
            with contextlib.suppress(OSError):  # a folder that is only readable
                os.utime(descriptor if os.utime in os.supports_fd else folder.path / name)
    finally:
        os.close(descriptor)
    return file[HEADER_SIZE:].toreadonly()


def _read(descriptor: int, size: int) -> mmap.mmap:
    """Read a small file into memory that begins at a page, as a map of it would; raises OSError."""
    buffer = mmap.mmap(-1, size)
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        if file.readinto(buffer) != size:
            raise OSError("it became shorter while it was read")
    return buffer


def _write(folder: OpenFolder, name: str, chunks: list[bytes | memoryview], *, sync: bool) -> None:
    """Write a file under a temporary name, and rename it; raises OSError."""
    new = NewFile(folder, name.removesuffix(_SUFFIX))
    try:
        new.write(chunks, mode=0o600, sync=sync)
        new.take(name)
    finally:
        new.discard()
