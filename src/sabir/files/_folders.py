"""The one door to files beside a model: nothing outside its folder is read or written through it.

A folder is held open while files in it are looked for, opened or replaced, so that nobody can put another
one in its place between a check and what follows.
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

_MOST_LINKS = 8
_HOLDS = os.open in os.supports_dir_fd and bool(NOFOLLOW)  # whether a folder can be held open
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_WAY = _FOLDER | getattr(os, "O_PATH", 0)  # a folder to go through; its list of entries may be forbidden


class _Link(NamedTuple):
    """A link on the way: the folder that it stands in, where it leads, what follows it."""

    folder: Path
    leads: str
    rest: list[str]


class _LeadsOutError(OSError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{quote(name)} is a link that leads out of the model's folder")


class HeldFolder:
    """A folder held open; the methods take names of its entries, and follow no link. They raise OSError."""

    def __init__(self, path: Path, descriptor: int | None = None, *, flags: int = _FOLDER) -> None:
        """Hold a folder, by its resolved path; `descriptor` is one that is open already."""
        self.path, self._flags = path, flags
        self._descriptor = os.open(path, flags) if descriptor is None and _HOLDS else descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def inner(self, name: str) -> HeldFolder:
        """Hold a folder inside this one."""
        if self._descriptor is None:
            return HeldFolder(self.path / name)
        opened = os.open(name, self._flags | NOFOLLOW, dir_fd=self._descriptor)
        return HeldFolder(self.path / name, opened, flags=self._flags)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a file."""
        return os.open(self._place(name), flags | NOFOLLOW, mode, dir_fd=self._descriptor)

    def status(self, name: str) -> os.stat_result | None:
        """Return what stands under a name, or None."""
        try:
            return os.stat(self._place(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def leads(self, name: str) -> str:
        """Return where a link leads."""
        return os.readlink(self._place(name), dir_fd=self._descriptor)

    def rename(self, old: str, new: str) -> None:
        """Give an entry a new name, in the place of what has it."""
        to = self._descriptor
        os.replace(self._place(old), self._place(new), src_dir_fd=to, dst_dir_fd=to)

    def link(self, leads: str, name: str) -> None:
        """Make a symbolic link."""
        os.symlink(leads, self._place(name), dir_fd=self._descriptor)

    def make(self, name: str) -> None:
        """Make a folder."""
        os.mkdir(self._place(name), dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file or a link."""
        os.unlink(self._place(name), dir_fd=self._descriptor)

    def remove_folder(self, name: str) -> None:
        """Remove a folder that is empty."""
        os.rmdir(self._place(name), dir_fd=self._descriptor)

    def sync(self) -> None:
        """Have the names of the entries written to the disk."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def _place(self, name: str) -> str | Path:
        return name if self._descriptor is not None else self.path / name


def open_inside(folder: Path, location: str, *, real: Path | None = None) -> int:
    """Open the file at `location` below `folder` for reading; returns its descriptor.

    No absolute path, no `..`, nothing but a regular file that has one name. A symbolic link is followed only
    where it ends below `folder`, or below `real`, the folder in which the model file itself lies where the
    path to it is a link; what is not found in the first is looked for there. What was opened is what is
    checked. Raises ExternalDataError.
    """
    shown = f"external data {quote(location)} in {folder}"
    parts = parts_of(location)
    try:
        descriptor = _open(_roots(folder, real or folder), parts)
    except _LeadsOutError as error:
        raise ExternalDataError(f"{shown}: {error}") from None
    except (OSError, ValueError) as error:
        raise ExternalDataError(f"{shown}: {reason(error)}") from error
    problem = _problem(os.fstat(descriptor))
    if problem:
        os.close(descriptor)
        raise ExternalDataError(f"{shown} {problem}")
    return descriptor


def _roots(*folders: Path) -> list[tuple[Path, Path]]:
    """Each folder as it is written and as it is; a link may name it either way."""
    return [(Path(os.path.normpath(f.absolute())), Path(os.path.realpath(f))) for f in dict.fromkeys(folders)]


def _open(roots: Sequence[tuple[Path, Path]], parts: list[str]) -> int:
    """Open what lies below the first of the folders that has it."""
    *before, last = dict.fromkeys(resolved for _, resolved in roots)
    for root in before:
        with contextlib.suppress(FileNotFoundError):
            return _open_below(root, roots, parts)
    return _open_below(last, roots, parts)


def _open_below(root: Path, roots: Sequence[tuple[Path, Path]], parts: list[str]) -> int:
    if not _HOLDS:
        return _checked_open(root, roots, parts)
    found = _descend(root, parts)
    for _ in range(_MOST_LINKS):
        if isinstance(found, int):
            return found
        found = _descend(*_landing(roots, found))
    if isinstance(found, int):
        return found
    raise OSError(f"there are more than {_MOST_LINKS} links on the way")


def _descend(root: Path, parts: list[str]) -> int | _Link:
    """Open what lies below a folder, or return the first link on the way."""
    if not parts:
        raise IsADirectoryError
    with contextlib.ExitStack() as held:
        folder = held.enter_context(HeldFolder(root, flags=_WAY))
        for place, part in enumerate(parts):
            status = folder.status(part)
            if status is None:
                raise FileNotFoundError
            if stat.S_ISLNK(status.st_mode):
                return _Link(folder.path, folder.leads(part), parts[place + 1 :])
            if place < len(parts) - 1:
                folder = held.enter_context(folder.inner(part))
            elif not stat.S_ISREG(status.st_mode):  # to open a device may already do something
                raise OSError(f"this is {_kind(status)}, not a file")
        return folder.open(parts[-1], READING)


def _landing(roots: Sequence[tuple[Path, Path]], link: _Link) -> tuple[Path, list[str]]:
    """Return the allowed folder that a link ends in, and the way on from there; decided by its text alone."""
    path = Path(os.path.normpath(link.folder / link.leads))
    for spelled, resolved in roots:
        for root in (resolved, spelled):
            if path.is_relative_to(root):
                return resolved, [*path.relative_to(root).parts, *link.rest]
    raise _LeadsOutError(link.leads)


def _checked_open(root: Path, roots: Sequence[tuple[Path, Path]], parts: list[str]) -> int:
    """Where folders cannot be held open: what was opened must be what lies at the resolved path."""
    path = root.joinpath(*parts).resolve(strict=True)
    if not any(path.is_relative_to(resolved) for _, resolved in roots):
        raise _LeadsOutError(parts[-1])
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
