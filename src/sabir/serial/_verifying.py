"""Verification of external data: whether all of it exists, as declared."""

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
    """A problem of the external data of the tensor at `where`.

    `data`: it cannot be read, as the file, its length or the entries are wrong. `checksum`: the file's SHA1
    digest differs from the declared one. `overlap`: it shares some, but not all, bytes with another tensor.

    >>> from sabir.base import Location
    >>> print(ExternalProblem('data', Location().at('graph'), 'the file is missing').message)
    the file is missing
    """

    kind: Literal["data", "checksum", "overlap"]
    where: Location
    message: str


def external_problems(model: Model, *, checksums: bool = False) -> Iterator[ExternalProblem]:
    """Yield the problems of the external data of a model; data is read only for `checksums`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> list(external_problems(model))
    []
    """
    survey = _Survey(checksums)
    for place in all_tensors(model):
        if isinstance(place.tensor, ExternalTensor):
            yield from survey.look(place, place.tensor)
    yield from survey.overlaps()


def require_external(model: Model) -> None:
    """Raise ExternalDataError for the first tensor whose data is missing or not as declared."""
    for problem in external_problems(model, checksums=True):
        if problem.kind != "overlap":
            raise ExternalDataError(f"{problem.where}: {problem.message}")


class _Survey:
    """The size and digest of each file seen so far, and which of its bytes tensors refer to."""

    def __init__(self, checksums: bool) -> None:  # ruff: ignore[boolean-type-hint-positional-argument] - internal
        self._checksums = checksums
        self._sizes: dict[tuple[Folder, str], int | str] = {}
        self._digests: dict[tuple[int, int], str] = {}
        self._files: dict[tuple[Folder, str], tuple[int, int]] = {}
        self._extents: dict[tuple[int, int], list[tuple[int, int, Location]]] = {}

    def look(self, place: TensorPlace, tensor: ExternalTensor) -> Iterator[ExternalProblem]:
        """Verify one tensor."""
        try:
            folder, extent, declared = self._find(tensor)
        except SabirError as error:
            yield ExternalProblem("data", place.where, str(error))
            return
        if extent.size:
            file = self._files[folder, extent.location]
            self._extents.setdefault(file, []).append((extent.start, extent.stop, place.where))
        if self._checksums and declared is not None:
            yield from self._compare(folder, extent, declared, place.where)

    def _find(self, tensor: ExternalTensor) -> tuple[Folder, Extent, str | None]:
        """Return where a tensor's data is, and its declared digest; raises where it is not there."""
        entries, size = tensor.place()
        folder = tensor.opener
        if not isinstance(folder, Folder):
            folder(entries, size)
            raise ExternalDataError("the data is in no folder")
        extent = extent_of(entries, size)
        extent.check(self._size(folder, extent.location))
        return folder, extent, entries.get("checksum")

    def overlaps(self) -> Iterator[ExternalProblem]:
        """Yield the tensors that share some, but not all, bytes with another; equal ones may share all."""
        for ranges in self._extents.values():
            reach, holder = 0, Location()
            distinct = {(start, stop): where for start, stop, where in reversed(ranges)}
            for (start, stop), where in sorted(distinct.items(), key=itemgetter(0)):
                if start < reach:
                    message = (
                        f"its data, bytes {start} to {stop}, overlaps that of {holder}, which ends at {reach}"
                    )
                    yield ExternalProblem("overlap", where, message)
                if stop > reach:
                    reach, holder = stop, where

    def _size(self, folder: Folder, location: str) -> int:
        """Return the size of a file, which is looked up once."""
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
        self, folder: Folder, extent: Extent, declared: str, where: Location
    ) -> Iterator[ExternalProblem]:
        key = self._files[folder, extent.location]  # one file may have many names in a model
        try:
            if key not in self._digests:
                self._digests[key] = folder.digest(extent.location)
        except ExternalDataError as error:
            yield ExternalProblem("data", where, str(error))
            return
        if declared.lower() != self._digests[key]:
            message = (
                f"the SHA1 digest of {quote(extent.location)} is {self._digests[key]}, not {quote(declared)}"
            )
            yield ExternalProblem("checksum", where, message)
