"""Files, read and written safely: mapped, contained in a folder, replaced in one step."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from typing import TYPE_CHECKING

from sabir.base._errors import ExternalDataError, FileError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_WORTH_MAPPING = 1 << 16  # a smaller file is read: a map would cost more, and could shrink under us
_LONGEST_LOCATION = 4096
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_READING = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_WALKS = os.open in os.supports_dir_fd and bool(_NOFOLLOW)


def map_file(path: Path) -> memoryview:
    """Return the bytes of a file, mapped where it is large.

    Raises FileError for a file that is missing, no regular file, or not to be read.
    """
    try:
        descriptor = os.open(path, _READING)
    except OSError as error:
        raise FileError(f"{path}: {_reason(error)}") from error
    try:
        return view_of(descriptor, str(path))
    finally:
        os.close(descriptor)


def view_of(descriptor: int, name: str) -> memoryview:
    """Return the bytes of an open file; the descriptor may be closed afterwards."""
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{name}: this is a directory, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{name}: this is no regular file")
    try:
        if status.st_size < _WORTH_MAPPING:
            with open(descriptor, "rb", closefd=False) as file:
                return memoryview(file.read())
        return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise FileError(f"{name}: {_reason(error)}") from error


def open_inside(folder: Path, location: str) -> int:
    """Open the file at `location` below `folder` for reading; returns its descriptor.

    The one door to external data: no absolute path, no `..`, no link of either kind on the way, nothing but
    a regular file. What was opened is what is checked. Raises ExternalDataError.
    """
    parts = _parts(location)
    try:
        descriptor = _walk(folder.resolve(), parts)
    except OSError as error:
        raise ExternalDataError(f"external data {quote(location)} in {folder}: {_reason(error)}") from error
    status = os.fstat(descriptor)
    problem = None
    if not stat.S_ISREG(status.st_mode):
        problem = "is no regular file"
    elif status.st_nlink > 1:
        problem = "is a hard link, which may lead out of the model's folder"
    if problem:
        os.close(descriptor)
        raise ExternalDataError(f"external data {quote(location)} in {folder} {problem}")
    return descriptor


def replace_file(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file in one step: at any moment the path holds the old bytes or all of the new ones.

    Raises FileError, and leaves no litter, where writing fails; so does an interrupt.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileError(f"{path}: there is no folder {target.parent}")
    temporary = target.with_name(f".{target.name[:64]}.{os.urandom(8).hex()}.tmp")
    replaced = False
    try:  # ruff: ignore[too-many-statements-in-try-clause]  one story, and any step of it may fail
        with temporary.open("xb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode(target))
        temporary.replace(target)
        replaced = True
        _sync_folder(target.parent)
    except OSError as error:
        raise FileError(f"{path}: {_reason(error)}; the old file, if any, is as it was") from error
    finally:
        if not replaced:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _parts(location: str) -> list[str]:
    """Return the components of a location; raises ExternalDataError for one that may lead elsewhere."""
    shown = quote(location)
    if not location or len(location) > _LONGEST_LOCATION:
        raise ExternalDataError(
            f"external data: the location {shown} must have 1 to {_LONGEST_LOCATION} characters"
        )
    if "\\" in location or any(ord(c) < 32 for c in location):  # ruff: ignore[magic-value-comparison] - below the first printable character
        raise ExternalDataError(f"external data: the location {shown} has a backslash or a control character")
    if location.startswith("/") or ":" in location.split("/", 1)[0]:
        raise ExternalDataError(f"external data: the location {shown} must be relative to the model's folder")
    parts = [p for p in location.split("/") if p not in {"", "."}]
    if ".." in parts or not parts:
        raise ExternalDataError(f"external data: the location {shown} must stay in the model's folder")
    return parts


def _walk(folder: Path, parts: list[str]) -> int:
    if not _WALKS:
        return _checked_open(folder, parts)
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        return os.open(parts[-1], _READING | _NOFOLLOW, dir_fd=here)
    finally:
        os.close(here)


def _checked_open(folder: Path, parts: list[str]) -> int:
    """Where no directory handles exist: the resolved path must be the plain one."""
    path = folder.joinpath(*parts)
    if path.resolve() != path:
        raise OSError("a link on the way leads elsewhere")
    return os.open(path, _READING)


def _mode(target: Path) -> int:
    """The permissions that a new file at `target` gets: the old file's, or the usual ones."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file"
        case PermissionError():
            return "permission denied"
        case IsADirectoryError():
            return "this is a directory, not a file"
        case _:
            return error.strerror or str(error)
