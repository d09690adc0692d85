"""Access to the files beside a model: nothing outside its folder is read or written.

A folder stays open while files in it are looked up, opened or replaced, so that nobody can replace it between
a check and the operation that follows.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import ExternalDataError, quote
from sabir.files._locations import parts_of
from sabir.files._reading import NOFOLLOW, READING, reason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

_MAX_LINKS = 8
_CAN_KEEP_OPEN = os.open in os.supports_dir_fd and bool(NOFOLLOW)  # whether the system can do that
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_TRAVERSAL = _FOLDER | getattr(os, "O_PATH", 0)  # needs no permission to list the entries


class _Link(NamedTuple):
    """A symbolic link on a path: its folder, its target, and the components after it."""

    folder: Path
    target: str
    rest: list[str]


class _OutsideError(OSError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{quote(name)} is a link that leads out of the model's folder")


class OpenFolder:
    """A folder that is kept open; its methods take names of its entries and follow no link.

    They raise OSError.
    """

    def __init__(self, path: Path, descriptor: int | None = None, *, flags: int = _FOLDER) -> None:
        """Open a folder by its resolved path; `descriptor` is one that is open already."""
        self.path, self._flags = path, flags
        self._descriptor = os.open(path, flags) if descriptor is None and _CAN_KEEP_OPEN else descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def inner(self, name: str) -> OpenFolder:
        """Open a folder inside this one."""
        if self._descriptor is None:
            return OpenFolder(self.path / name)
        descriptor = os.open(name, self._flags | NOFOLLOW, dir_fd=self._descriptor)
        return OpenFolder(self.path / name, descriptor, flags=self._flags)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a file."""
        return os.open(self._place(name), flags | NOFOLLOW, mode, dir_fd=self._descriptor)

    def status(self, name: str) -> os.stat_result | None:
        """Return the status of an entry, or None where there is none of this name."""
        try:
            return os.stat(self._place(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def link_target(self, name: str) -> str:
        """Return the target of a symbolic link."""
        return os.readlink(self._place(name), dir_fd=self._descriptor)

    def rename(self, old: str, new: str) -> None:
        """Give an entry a new name, replacing the entry that has it."""
        here = self._descriptor
        os.replace(self._place(old), self._place(new), src_dir_fd=here, dst_dir_fd=here)

    def link(self, target: str, name: str) -> None:
        """Make a symbolic link to `target`."""
        os.symlink(target, self._place(name), dir_fd=self._descriptor)

    def make(self, name: str) -> None:
        """Make a folder."""
        os.mkdir(self._place(name), dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file or a link."""
        os.unlink(self._place(name), dir_fd=self._descriptor)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._place(name), dir_fd=self._descriptor)

    def sync(self) -> None:
        """Wait until the names of the entries are on the disk."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def _place(self, name: str) -> str | Path:
        return name if self._descriptor is not None else self.path / name


def open_inside(folder: Path, location: str, *, real: Path | None = None) -> int:
    """Open the file at `location` below `folder` for reading, and return its descriptor.

    It must be a regular file with one name, and the location has no `..` and is not absolute. A symbolic link
    is followed only where it ends below `folder`, or below `real`: the folder that contains the model file
    where the path to it is a link. A file that is not in the first is looked up there. The checks look at the
    opened file. Raises ExternalDataError.
    """
    shown = f"external data {quote(location)} in {folder}"
    parts = parts_of(location)
    try:
        descriptor = _open(_roots(folder, real or folder), parts)
    except _OutsideError as error:
        raise ExternalDataError(f"{shown}: {error}") from None
    except (OSError, ValueError) as error:
        raise ExternalDataError(f"{shown}: {reason(error)}") from error
    problem = _problem(os.fstat(descriptor))
    if problem:
        os.close(descriptor)
        raise ExternalDataError(f"{shown} {problem}")
    return descriptor


def _roots(*folders: Path) -> list[tuple[Path, Path]]:
    """Return each folder as spelled and as resolved; a link may name it either way."""
    return [(Path(os.path.normpath(f.absolute())), Path(os.path.realpath(f))) for f in dict.fromkeys(folders)]


def _open(roots: Sequence[tuple[Path, Path]], parts: list[str]) -> int:
    """Open a file below the first of the folders that contains it."""
    *before, last = dict.fromkeys(resolved for _, resolved in roots)
    for root in before:
        with contextlib.suppress(FileNotFoundError):
            return _open_below(root, roots, parts)
    return _open_below(last, roots, parts)


def _open_below(root: Path, roots: Sequence[tuple[Path, Path]], parts: list[str]) -> int:
    if not _CAN_KEEP_OPEN:
        return _checked_open(root, roots, parts)
    found = _descend(root, parts)
    for _ in range(_MAX_LINKS):
        if isinstance(found, int):
            return found
        found = _descend(*_landing(roots, found))
    if isinstance(found, int):
        return found
    raise OSError(f"the path has more than {_MAX_LINKS} symbolic links")


def _descend(root: Path, parts: list[str]) -> int | _Link:
    """Open a file below a folder, or return the first link on its path."""
    if not parts:
        raise IsADirectoryError
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(OpenFolder(root, flags=_TRAVERSAL))
        for place, part in enumerate(parts):
            status = folder.status(part)
            if status is None:
                raise FileNotFoundError
            if stat.S_ISLNK(status.st_mode):
                return _Link(folder.path, folder.link_target(part), parts[place + 1 :])
            if place < len(parts) - 1:
                folder = stack.enter_context(folder.inner(part))
            elif not stat.S_ISREG(status.st_mode):  # opening a device may have an effect
                raise OSError(f"this is {_kind(status)}, not a file")
        return folder.open(parts[-1], READING)


def _landing(roots: Sequence[tuple[Path, Path]], link: _Link) -> tuple[Path, list[str]]:
    """Return the allowed folder that a link ends in, and the components below it, from its text alone."""
    path = Path(os.path.normpath(link.folder / link.target))
    for spelled, resolved in roots:
        for root in (resolved, spelled):
            if path.is_relative_to(root):
                return resolved, [*path.relative_to(root).parts, *link.rest]
    raise _OutsideError(link.target)


def _checked_open(root: Path, roots: Sequence[tuple[Path, Path]], parts: list[str]) -> int:
    """Open a file where folders cannot be kept open: it must be the one at the resolved path."""
    path = root.joinpath(*parts).resolve(strict=True)
    if not any(path.is_relative_to(resolved) for _, resolved in roots):
        raise _OutsideError(parts[-1])
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"this is {_kind(status)}, not a file")
    descriptor = os.open(path, READING)
    if not os.path.samestat(status, os.fstat(descriptor)):
        os.close(descriptor)
        raise OSError("the file was replaced while it was opened")
    return descriptor


def _problem(status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode):
        return f"is {_kind(status)}, not a file"
    if status.st_nlink > 1:
        return "is a hard link, which may lead out of the model's folder"
    return ""


def _kind(status: os.stat_result) -> str:
    return "a directory" if stat.S_ISDIR(status.st_mode) else "a pipe, a socket or a device"
