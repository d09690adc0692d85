"""Saving a model with its data in files of their own, so that no step between leaves a mixture.

What a model and its data are is told by several files, and no system replaces several at once. So a model
never names a data file before all of it is on the disk, and a file that a model names is never replaced by
one with other data: where the wanted name is taken by the old data, the new data gets another name first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from sabir.base import FileError, SabirError, quote
from sabir.files import PIECE, HeldFolder, NewFile, parts_of, temporary_name, writable
from sabir.ir import ExternalTensor, all_tensors
from sabir.serial._external import Folder
from sabir.serial._formats import format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from sabir.files import Streamed
    from sabir.ir import Buffer, Model
    from sabir.serial._placement import DataFile, Placement

    Progress = Callable[[int, int], object]
    Identity = tuple[int, int]

_KEY = b"location"  # stands in every text of a model that has external data
_LARGEST_TEXT = 1 << 31
_LONGEST_STEM = 24  # characters of a name and of its ending that stay where it gets another


class _Spot:
    """A data file in the making, and what has its name now."""

    def __init__(self, file: DataFile, folder: HeldFolder, name: str) -> None:
        self.file, self.folder, self.name = file, folder, name
        self.status = folder.status(name)
        self.new = NewFile(folder, name)

    @property
    def identities(self) -> set[Identity]:
        """Which file has the name now, and which one it leads to where it is a link."""
        found = [self.status]
        with contextlib.suppress(OSError):
            found.append((self.folder.path / self.name).stat())
        return {(s.st_dev, s.st_ino) for s in found if s is not None}

    @property
    def mode(self) -> int | None:
        """The permissions of the file that has the name now."""
        return _mode(self.status)


class Saving:
    """One save: the model file, its data files, and the folder in which they belong together."""

    def __init__(
        self,
        model: Model,
        path: Path,
        placement: Placement,
        *,
        chunks: Callable[[], Iterable[Buffer | Streamed]],
        read: Callable[[Path], Model],
    ) -> None:
        """Take what to save; `chunks` gives the model file's bytes for the places that `placement` tells now.

        `read` loads another model file, to see which data it uses. Raises FileError where the model cannot
        stand where it is to.
        """
        self._model, self._path, self._placement = model, path, placement
        self._chunks, self._read = chunks, read
        self._target = writable(path)
        self._folder = Path(os.path.realpath(path.absolute().parent))
        self._held: dict[tuple[str, ...], HeldFolder] = {}
        self._replaced = False

    def run(self, progress: Progress | None = None) -> None:
        """Write all files; `progress` is told the bytes of data written, and of all there are.

        Raises FileError, and then a model that was there is there still, with its data.
        """
        try:
            with contextlib.ExitStack() as stack:
                self._run(stack, progress)
        except OSError as error:
            told = f"{self._path}: its data cannot be written: {error.strerror or error}"
            raise FileError(f"{told}; the old files, if any, are as they were") from error

    def _run(self, stack: contextlib.ExitStack, progress: Progress | None) -> None:
        self._held[()] = stack.enter_context(HeldFolder(self._folder))
        with contextlib.ExitStack() as undo:
            spots = [self._spot(file, stack, undo) for file in self._placement.files]
            in_use = self._in_use([spot for spot in spots if spot.status is not None])
            self._write(spots, progress)
            if not in_use:
                self._place(spots, undo)
                return
            fresh = self._place_aside(spots, undo)
        self._take_names(fresh)

    # finding the places

    def _spot(self, file: DataFile, stack: contextlib.ExitStack, undo: contextlib.ExitStack) -> _Spot:
        *inner, name = parts_of(file.location)
        spot = _Spot(file, self._hold(tuple(inner), stack, undo), name)
        undo.callback(spot.new.discard)
        path, status = spot.folder.path / name, spot.status
        if path in {self._target, self._folder / self._path.name}:
            raise FileError(f"{quote(file.location)} is the model file itself; give the data another name")
        if status is not None and not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            raise FileError(f"{path}: this is no regular file, and is not replaced by one")
        if status is not None and format_of(path) is not None and self._is_model(path):
            raise FileError(f"{path}: this is a model; give the data another name")
        return spot

    def _hold(
        self, parts: tuple[str, ...], stack: contextlib.ExitStack, undo: contextlib.ExitStack
    ) -> HeldFolder:
        """Hold a folder below the model's, made where it is not there."""
        found = self._held.get(parts)
        if found is None:
            outer = self._hold(parts[:-1], stack, undo)
            if outer.status(parts[-1]) is None:
                undo.callback(_remove_folder, outer, parts[-1])
                outer.make(parts[-1])
            found = self._held[parts] = stack.enter_context(outer.inner(parts[-1]))
        return found

    def _in_use(self, taken: list[_Spot]) -> bool:
        """Whether the model that is to be replaced uses a file whose name is wanted.

        Raises FileError where another model in the folder does.
        """
        if not taken:
            return False
        wanted = set[Any]().union(*(spot.identities for spot in taken))
        for path in sorted(self._folder.iterdir()):
            if format_of(path) is not None and path.is_file() and not self._is_target(path):
                shared = self._used_by(path) & wanted
                if shared:
                    name = next(spot.name for spot in taken if spot.identities & shared)
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
        """The data files that a model file uses; none where it cannot be read."""
        if format_of(path) not in {None, "protobuf"} and not _says(path, _KEY):
            return set()
        try:
            model = self._read(path)
        except SabirError:
            return set()
        return {(s.st_dev, s.st_ino) for _, _, s in _data_files_of(model)}

    # writing

    def _write(self, spots: list[_Spot], progress: Progress | None) -> None:
        done, total = 0, self._placement.size

        def written(size: int) -> None:
            nonlocal done
            done += size
            if progress is not None:
                progress(done, total)

        for spot in spots:
            sha1 = hashlib.sha1(usedforsecurity=False) if self._placement.checksum else None
            digest = None if sha1 is None else sha1.update
            spot.new.write(spot.file.chunks(), mode=spot.mode, written=written, digest=digest)
            spot.file.digest = "" if sha1 is None else sha1.hexdigest()

    def _place(self, spots: list[_Spot], undo: contextlib.ExitStack) -> None:
        """Give the data its names, which no model uses, and then the model its own."""
        with self._new_model() as model:
            self._hold_old(spots)
            for spot in spots:
                undo.callback(self._withdraw, spot, spot.name)
                spot.new.take(spot.name)
            self._sync()
            model.take(self._target.name)
            model.folder.sync()
            undo.pop_all()

    def _place_aside(self, spots: list[_Spot], undo: contextlib.ExitStack) -> list[_Spot]:
        """Give the data names that nothing has, and then the model its own: the old data is used no more."""
        token = os.urandom(4).hex()
        for spot in spots:
            path = PurePosixPath(spot.file.location)
            aside = path.with_name(f"{path.stem[:_LONGEST_STEM]}.{token}{path.suffix[:_LONGEST_STEM]}")
            self._placement.locations[spot.file] = str(aside)
            undo.callback(self._withdraw, spot, aside.name)
            spot.new.take(aside.name)
        self._sync()
        with self._new_model() as model:
            self._hold_old(spots)
            model.take(self._target.name)
            model.folder.sync()
            undo.pop_all()
        return spots

    def _withdraw(self, spot: _Spot, name: str) -> None:
        """Take new data away again, unless the new model is there, which uses it."""
        if not self._replaced:
            spot.new.withdraw(name)

    def _take_names(self, spots: list[_Spot]) -> None:
        """Give the data its wanted names: these first lead to it, so that it is found under both.

        Where a folder can hold no links, the data keeps the names that it has.
        """
        for spot in spots:
            self._placement.locations[spot.file] = spot.file.location
        with self._new_model() as model:
            for spot in spots:
                if not _link(spot):
                    return
            self._sync()
            model.take(self._target.name)
            model.folder.sync()
        for spot in spots:
            spot.new.take(spot.name)
        self._sync()

    @contextlib.contextmanager
    def _new_model(self) -> Generator[NewFile, None, None]:
        """Yield the model file, written but not yet under its name."""
        with HeldFolder(self._target.parent) as folder:
            new = NewFile(folder, self._target.name)
            try:
                new.write(self._chunks(), mode=_mode(folder.status(self._target.name)))
                yield new
            finally:
                new.discard()
                self._replaced |= new.has(self._target.name)

    def _hold_old(self, spots: list[_Spot]) -> None:
        """Have the model that is saved hold on to data whose names are about to change hands."""
        wanted = set[Any]().union(*(spot.identities for spot in spots))
        for folder, location, status in _data_files_of(self._model) if wanted else ():
            if (status.st_dev, status.st_ino) in wanted:
                folder.hold(location)

    def _sync(self) -> None:
        for folder in self._held.values():
            folder.sync()


def _says(path: Path, word: bytes) -> bool:
    """Whether a word stands in a file, which may be a large text that is no model."""
    kept = b""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > _LARGEST_TEXT:
                return False
            while piece := file.read(PIECE):
                if word in kept + piece:
                    return True
                kept = piece[-len(word) :]
    except OSError:
        pass
    return False


def _data_files_of(model: Model) -> Iterator[tuple[Folder, str, os.stat_result]]:
    """Yield each data file that a model uses and that is there."""
    seen: set[tuple[int, str]] = set()
    for tensor, *_ in all_tensors(model):
        if not isinstance(tensor, ExternalTensor) or not isinstance(tensor.opener, Folder):
            continue
        folder, location = tensor.opener, tensor.entries.get("location", "")
        if (id(folder), location) not in seen:
            seen.add((id(folder), location))
            with contextlib.suppress(SabirError):
                yield folder, location, folder.look(location)


def _link(spot: _Spot) -> bool:
    """Have the wanted name lead to the new data; return whether the folder can hold a link."""
    name = temporary_name(spot.name)
    try:
        try:
            spot.folder.link(spot.new.name, name)
        except (OSError, NotImplementedError):
            return False
        spot.folder.rename(name, spot.name)
    finally:
        with contextlib.suppress(OSError):
            spot.folder.remove(name)
    return True


def _remove_folder(outer: HeldFolder, name: str) -> None:
    with contextlib.suppress(OSError):
        outer.remove_folder(name)


def _mode(status: os.stat_result | None) -> int | None:
    regular = status is not None and stat.S_ISREG(status.st_mode)
    return stat.S_IMODE(status.st_mode) if status is not None and regular else None
