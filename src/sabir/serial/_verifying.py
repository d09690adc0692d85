"""Whether the external data of a model is all there, and as it should be."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from sabir.base import ExternalDataError, Location, SabirError, quote
from sabir.ir import ExternalTensor, all_tensors
from sabir.serial._external import Extent, Folder, extent_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Model, TensorPlace


class ExternalProblem(NamedTuple):
    """What is wrong with the external data of the tensor at `where`.

    `data`: it cannot be read, as the file, its length or the entries are wrong. `checksum`: the file's SHA1
    digest is another one than is told. `overlap`: it shares some, but not all, bytes with another tensor.
    """

    kind: Literal["data", "checksum", "overlap"]
    where: Location
    message: str


def external_problems(model: Model, *, checksums: bool = False) -> Iterator[ExternalProblem]:
    """Yield what is wrong with the external data of a model; no data is read, but for `checksums`."""
    survey = _Survey(checksums)
    for place in all_tensors(model):
        if isinstance(place.tensor, ExternalTensor):
            yield from survey.look(place, place.tensor)
    yield from survey.overlaps()


def require_external(model: Model) -> None:
    """Raise ExternalDataError for the first tensor whose data is not there, or not what it is said to be."""
    for problem in external_problems(model, checksums=True):
        if problem.kind != "overlap":
            raise ExternalDataError(f"{problem.where}: {problem.message}")


class _Survey:
    """What was found so far: the size and digest of each file, and which bytes of it tensors take."""

    def __init__(self, checksums: bool) -> None:  # ruff: ignore[boolean-type-hint-positional-argument] - internal
        self._checksums = checksums
        self._sizes: dict[tuple[Folder, str], int | str] = {}
        self._digests: dict[tuple[int, int], str] = {}
        self._files: dict[tuple[Folder, str], tuple[int, int]] = {}
        self._taken: dict[tuple[int, int], list[tuple[int, int, Location]]] = {}

    def look(self, place: TensorPlace, tensor: ExternalTensor) -> Iterator[ExternalProblem]:
        """Look at one tensor."""
        try:
            folder, extent, told = self._find(tensor)
        except SabirError as error:
            yield ExternalProblem("data", place.where, str(error))
            return
        if extent.size:
            file = self._files[folder, extent.location]
            self._taken.setdefault(file, []).append((extent.start, extent.stop, place.where))
        if self._checksums and told is not None:
            yield from self._compare(folder, extent, told, place.where)

    def _find(self, tensor: ExternalTensor) -> tuple[Folder, Extent, str | None]:
        """Return where a tensor's data lies, and the digest that is told; raises where it does not."""
        entries, size = tensor.place()
        folder = tensor.opener
        if not isinstance(folder, Folder):
            folder(entries, size)
            raise ExternalDataError("the data lies in no folder")
        extent = extent_of(entries, size)
        extent.check(self._size(folder, extent.location))
        return folder, extent, entries.get("checksum")

    def overlaps(self) -> Iterator[ExternalProblem]:
        """Yield the tensors that share some, but not all, bytes with another; to share all is to be equal."""
        for ranges in self._taken.values():
            reach, holder = 0, Location()
            distinct = {(start, stop): where for start, stop, where in reversed(ranges)}
            for (start, stop), where in sorted(distinct.items(), key=itemgetter(0)):
                if start < reach:
                    told = (
                        f"its data, bytes {start} to {stop}, overlaps that of {holder}, which ends at {reach}"
                    )
                    yield ExternalProblem("overlap", where, told)
                if stop > reach:
                    reach, holder = stop, where

    def _size(self, folder: Folder, location: str) -> int:
        """Return the size of a file, which is looked for once."""
        key = folder, location
        if key not in self._sizes:
            try:
                status = folder.look(location)
            except ExternalDataError as error:
                self._sizes[key] = str(error)
            else:
                self._sizes[key] = status.st_size
                self._files[key] = status.st_dev, status.st_ino
        found = self._sizes[key]
        if isinstance(found, str):
            raise ExternalDataError(found)
        return found

    def _compare(
        self, folder: Folder, extent: Extent, told: str, where: Location
    ) -> Iterator[ExternalProblem]:
        key = self._files[folder, extent.location]  # one file may have many names in a model
        try:
            if key not in self._digests:
                self._digests[key] = folder.digest(extent.location)
        except ExternalDataError as error:
            yield ExternalProblem("data", where, str(error))
            return
        if told.lower() != self._digests[key]:
            message = (
                f"the SHA1 digest of {quote(extent.location)} is {self._digests[key]}, not {quote(told)}"
            )
            yield ExternalProblem("checksum", where, message)
