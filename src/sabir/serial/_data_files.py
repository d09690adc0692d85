"""Saving a model with its data in separate files, so that no step between leaves a mixture.

A model and its data are several files, and no system replaces several at once. So a model never names a data
file before all of it is on the disk, and a file that a model names is never replaced by one with other data:
where the wanted name belongs to the old data, the new data gets another name first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from sabir.base import FileError, SabirError, quote
from sabir.files import NewFile, OpenFolder, parts_of, temporary_name, writable
from sabir.serial._data_users import data_files_of, identity_of, mentions_external_data
from sabir.serial._formats import format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from sabir.files import LazyBytes
    from sabir.ir import Buffer, Model
    from sabir.serial._data_users import Identity
    from sabir.serial._placement import DataFile, Placement

    Progress = Callable[[int, int], object]

_MAX_STEM = 24  # characters of a name and of its extension that are kept in a temporary name


class _NewData:
    """A data file that is being written, and the file that has its name now."""

    def __init__(self, file: DataFile, folder: OpenFolder, name: str) -> None:
        self.file, self.folder, self.name = file, folder, name
        self.status = folder.status(name)
        self.new = NewFile(folder, name)

    @property
    def identities(self) -> set[Identity]:
        """The file that has the name now, and where that is a link, its target."""
        found = [self.status]
        with contextlib.suppress(OSError):
            found.append((self.folder.path / self.name).stat())
        return {identity_of(status) for status in found if status is not None}

    @property
    def mode(self) -> int | None:
        """The permissions of the file that has the name now."""
        return _mode(self.status)


class SplitSave:
    """One save of a model file and its data files, which belong in one folder."""

    def __init__(
        self,
        model: Model,
        path: Path,
        placement: Placement,
        *,
        chunks: Callable[[], Iterable[Buffer | LazyBytes]],
        read: Callable[[Path], Model],
    ) -> None:
        """Prepare a save; `chunks` returns the bytes of the model file for the current names in `placement`.

        `read` loads another model file, to find out which data it uses. Raises FileError where `path` cannot
        be written.
        """
        self._model, self._path, self._placement = model, path, placement
        self._chunks, self._read = chunks, read
        self._target = writable(path)
        self._folder = Path(os.path.realpath(path.absolute().parent))
        self._folders: dict[tuple[str, ...], OpenFolder] = {}
        self._replaced = False

    def run(self, progress: Progress | None = None) -> None:
        """Write all files; `progress` is called with the bytes of data written, and with all there are.

        Raises FileError; the model that was there before is then still there, with its data.
        """
        try:
            with contextlib.ExitStack() as stack:
                self._run(stack, progress)
        except OSError as error:
            problem = f"{self._path}: its data cannot be written: {error.strerror or error}"
            raise FileError(f"{problem}; the old files, if any, are unchanged") from error

    def _run(self, stack: contextlib.ExitStack, progress: Progress | None) -> None:
        self._folders[()] = stack.enter_context(OpenFolder(self._folder))
        with contextlib.ExitStack() as undo:
            files = [self._prepare(file, stack, undo) for file in self._placement.files]
            in_use = self._in_use([file for file in files if file.status is not None])
            self._write(files, progress)
            if not in_use:
                self._place(files, undo)
                return
            self._place_aside(files, undo)
        self._take_names(files)

    # finding the places

    def _prepare(self, file: DataFile, stack: contextlib.ExitStack, undo: contextlib.ExitStack) -> _NewData:
        *inner, name = parts_of(file.location)
        prepared = _NewData(file, self._open(tuple(inner), stack, undo), name)
        undo.callback(prepared.new.discard)
        path, status = prepared.folder.path / name, prepared.status
        if path in {self._target, self._folder / self._path.name}:
            raise FileError(f"{quote(file.location)} is the model file itself; give the data another name")
        if status is not None and not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            raise FileError(f"{path}: this is not a regular file, and cannot be replaced by one")
        if status is not None and format_of(path) is not None and self._is_model(path):
            raise FileError(f"{path}: this is a model; give the data another name")
        return prepared

    def _open(
        self, parts: tuple[str, ...], stack: contextlib.ExitStack, undo: contextlib.ExitStack
    ) -> OpenFolder:
        """Open a folder below the model's, and make it where it is missing."""
        found = self._folders.get(parts)
        if found is None:
            outer = self._open(parts[:-1], stack, undo)
            if outer.status(parts[-1]) is None:
                undo.callback(_remove_folder, outer, parts[-1])
                outer.make(parts[-1])
            found = self._folders[parts] = stack.enter_context(outer.inner(parts[-1]))
        return found

    def _in_use(self, taken: list[_NewData]) -> bool:
        """Return whether the model that will be replaced uses a file whose name is wanted.

        Raises FileError where another model in the folder does.
        """
        if not taken:
            return False
        wanted = set[Any]().union(*(file.identities for file in taken))
        for path in sorted(self._folder.iterdir()):
            if format_of(path) is not None and path.is_file() and not self._is_target(path):
                shared = self._used_by(path) & wanted
                if shared:
                    name = next(file.name for file in taken if file.identities & shared)
                    raise FileError(f"{path.name} uses the data file {name}; give the data another name")
        return bool(self._used_by(self._path) & wanted)

    def _is_target(self, path: Path) -> bool:
        return self._target.exists() and path.samefile(self._target)

    def _is_model(self, path: Path) -> bool:
        try:
            self._read(path)
        except SabirError:
            return False
        return True

    def _used_by(self, path: Path) -> set[Identity]:
        """Return the data files that a model file uses; none where it cannot be read."""
        if format_of(path) not in {None, "protobuf"} and not mentions_external_data(path):
            return set()
        try:
            model = self._read(path)
        except SabirError:
            return set()
        return {identity_of(status) for _, _, status in data_files_of(model)}

    # writing

    def _write(self, files: list[_NewData], progress: Progress | None) -> None:
        done, total = 0, self._placement.size

        def written(size: int) -> None:
            nonlocal done
            done += size
            if progress is not None:
                progress(done, total)

        for file in files:
            sha1 = hashlib.sha1(usedforsecurity=False) if self._placement.checksum else None
            digest = None if sha1 is None else sha1.update
            file.new.write(file.file.chunks(), mode=file.mode, written=written, digest=digest)
            file.file.digest = "" if sha1 is None else sha1.hexdigest()

    def _place(self, files: list[_NewData], undo: contextlib.ExitStack) -> None:
        """Give the data its names, which no model uses, and then the model its own."""
        with self._new_model() as model:
            self._keep_old(files)
            for file in files:
                undo.callback(self._withdraw, file, file.name)
                file.new.take(file.name)
            self._sync()
            model.take(self._target.name)
            model.folder.sync()
            undo.pop_all()

    def _place_aside(self, files: list[_NewData], undo: contextlib.ExitStack) -> None:
        """Give the data unused names, and then the model its own: no model uses the old data any more."""
        token = os.urandom(4).hex()
        for file in files:
            path = PurePosixPath(file.file.location)
            aside = path.with_name(f"{path.stem[:_MAX_STEM]}.{token}{path.suffix[:_MAX_STEM]}")
            self._placement.locations[file.file] = str(aside)
            undo.callback(self._withdraw, file, aside.name)
            file.new.take(aside.name)
        self._sync()
        with self._new_model() as model:
            self._keep_old(files)
            model.take(self._target.name)
            model.folder.sync()
            undo.pop_all()

    def _withdraw(self, file: _NewData, name: str) -> None:
        """Remove new data again, unless the new model, which uses it, is there."""
        if not self._replaced:
            file.new.withdraw(name)

    def _take_names(self, files: list[_NewData]) -> None:
        """Give the data its wanted names: these are first links to it, so that both names work.

        Where the folder's file system has no links, the data keeps the names that it has.
        """
        for file in files:
            self._placement.locations[file.file] = file.file.location
        with self._new_model() as model:
            for file in files:
                if not _link(file):
                    return
            self._sync()
            model.take(self._target.name)
            model.folder.sync()
        for file in files:
            file.new.take(file.name)
        self._sync()

    @contextlib.contextmanager
    def _new_model(self) -> Generator[NewFile, None, None]:
        """Yield the model file, written but still under a temporary name."""
        with OpenFolder(self._target.parent) as folder:
            new = NewFile(folder, self._target.name)
            try:
                new.write(self._chunks(), mode=_mode(folder.status(self._target.name)))
                yield new
            finally:
                new.discard()
                self._replaced |= new.has(self._target.name)

    def _keep_old(self, files: list[_NewData]) -> None:
        """Let the model object keep the data in files that will lose their names."""
        wanted = set[Any]().union(*(file.identities for file in files))
        for folder, location, status in data_files_of(self._model) if wanted else ():
            if identity_of(status) in wanted:
                folder.keep(location)

    def _sync(self) -> None:
        for folder in self._folders.values():
            folder.sync()


def _link(file: _NewData) -> bool:
    """Make the wanted name a link to the new data; return whether the file system has links."""
    name = temporary_name(file.name)
    try:
        try:
            file.folder.link(file.new.name, name)
        except (OSError, NotImplementedError):
            return False
        file.folder.rename(name, file.name)
    finally:
        with contextlib.suppress(OSError):
            file.folder.remove(name)
    return True


def _remove_folder(outer: OpenFolder, name: str) -> None:
    with contextlib.suppress(OSError):
        outer.remove_folder(name)


def _mode(status: os.stat_result | None) -> int | None:
    regular = status is not None and stat.S_ISREG(status.st_mode)
    return stat.S_IMODE(status.st_mode) if status is not None and regular else None
