"""External data: tensors whose bytes are in files beside the model."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import ExternalDataError, quote
from sabir.checking._examples import RELU, X, Y, in_graph
from sabir.checking._rule import Problem, Textproto, rule
from sabir.elements import packed_size
from sabir.files import parts_of
from sabir.ir import ExternalTensor
from sabir.serial import Folder, extent_of, external_problems

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from sabir.base import Location
    from sabir.checking._messages import TensorMessage
    from sabir.checking._survey import Survey, TensorSite

_LOCATING = ("location", "offset", "length", "checksum")
_BASEPATH = "basepath"  # not in the standard, but the Python API of `onnx` can write it
_KNOWN = frozenset({*_LOCATING, _BASEPATH})
_DIGEST = re.compile(r"[0-9a-f]{40}", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
_PAGE = 4096
_ALWAYS_READ = 1 << 26
_LAW = (
    "In such a case, the tensor MUST provide the filename relative to the model file and MUST NOT use the"
    " value fields."
)
_RANGE = "It MAY provide a byte offset and length within that file."
_DATA = "weights.data"  # a file in the folder of the examples, with the bytes of four floats


def _outside(*entries: str, fields: str = "dims: 4 data_type: 1") -> Textproto:
    """Return an example with an initializer in another file: `offset=4` and the like."""
    pairs = (entry.split("=", 1) for entry in entries)
    lines = (f'external_data {{ key: "{key}" value: "{value}" }}' for key, value in pairs)
    return _with(f"{fields} data_location: EXTERNAL {' '.join(lines)}")


def _with(*tensors: str) -> Textproto:
    initializers = " ".join(f'initializer {{ name: "w{i}" {fields} }}' for i, fields in enumerate(tensors))
    return in_graph(f'{RELU} name: "g" {initializers} {X} {Y}')


def _range(offset: int, length: int) -> str:
    entries = {"location": _DATA, "offset": str(offset), "length": str(length)}
    lines = " ".join(f'external_data {{ key: "{k}" value: "{v}" }}' for k, v in entries.items())
    return f"dims: {length // 4} data_type: 1 data_location: EXTERNAL {lines}"


_HERE = f"location={_DATA}"
_GOOD = (_outside(_HERE), _outside(_HERE, "offset=0", "length=16"))


class _External(NamedTuple):
    """An external tensor with its entries."""

    tensor: ExternalTensor
    entries: dict[str, str]
    message: TensorMessage
    where: Location

    @property
    def location(self) -> str:
        return self.entries.get("location", "")

    @property
    def file(self) -> tuple[Folder, str] | None:
        """The folder and the path in it, if the model has a folder and the location is valid."""
        folder = self.tensor.opener
        if not isinstance(folder, Folder) or folder.path is None or _misplaced(self.location):
            return None
        return folder, "/".join(parts_of(self.location))

    @property
    def size(self) -> int | None:
        """The number of bytes that type and shape need, if both are valid."""
        element, count = self.message.element, self.message.size
        return None if element is None or count is None or not element.bits else packed_size(element, count)


def _all(survey: Survey) -> Iterator[_External]:
    for site in survey.external:
        if isinstance(site.tensor, ExternalTensor) and site.message is not None:
            texts: dict[object, object] = {**site.tensor.entries}  # TENSOR010 reports what is not UTF-8
            entries = {k: v for k, v in texts.items() if isinstance(k, str) and isinstance(v, str)}
            yield _External(site.tensor, entries, site.message, site.where)


def _misplaced(location: str) -> str:
    """Return why a location is invalid, or ""."""
    try:
        parts_of(location)
    except ExternalDataError as error:
        return str(error)
    return ""


@rule(
    "DATA001",
    _LAW,
    source="ir.txt",
    over="model",
    bad=(_outside(), _outside("location="), _outside("offset=0")),
    good=_GOOD,
)
def names_a_file(survey: Survey) -> Iterator[Problem]:
    """An external tensor names the file with its data."""
    for external in _all(survey):
        if not external.location:
            yield Problem(
                "the tensor is external, but names no file", external.where, "add the entry `location`"
            )


@rule(
    "DATA002",
    _LAW,
    source="ir.txt",
    over="model",
    bad=_outside(_HERE, fields="dims: 4 data_type: 1 float_data: [1, 2, 3, 4]"),
    good=_GOOD,
)
def no_values_beside(survey: Survey) -> Iterator[Problem]:
    """An external tensor has no data in the model."""
    for external in _all(survey):
        if external.message.fields:
            message = f"the tensor is external, but {external.message.fields[0]} has data"
            yield Problem(message, external.where, "keep the intended one")


@rule(
    "DATA003",
    _LAW,
    source="ir.txt",
    over="model",
    bad=(
        _outside("location=../weights.data"),
        _outside("location=/etc/hostname"),
        _outside("location=a/../../b"),
        _outside(f"location={_DATA}/"),
        _outside(f"location={_DATA}/."),
        _outside("location=."),
        _outside(r"location=C:\\weights.data"),
    ),
    good=_GOOD,
)
def stays_in_the_folder(survey: Survey) -> Iterator[Problem]:
    """The location names a file, relative to the model's folder and in it."""
    for external in _all(survey):
        message = _misplaced(external.location) if external.location else ""
        if message:
            yield Problem(
                message, external.where, "name a file in the model's folder, relative to that folder"
            )


@rule(
    "DATA004",
    "The raw data for large constant tensors, such as initializers, MAY be serialised in a separate file.",
    source="ir.txt",
    over="model",
    bad=_outside("location=missing.data"),
    good=_GOOD,
)
def file_is_there(survey: Survey) -> Iterator[Problem]:
    """The file exists, is regular, has one hard link, and is in the model's folder after following links."""
    checked: set[tuple[Folder, str]] = set()
    for external in _all(survey):
        file = external.file
        if file is None or file in checked:
            continue
        checked.add(file)
        try:
            file[0].look(file[1])
        except ExternalDataError as error:
            yield Problem(str(error), external.where, "put the file beside the model")


def _looked(file: tuple[Folder, str] | None) -> os.stat_result | None:
    try:
        return None if file is None else file[0].look(file[1])
    except ExternalDataError:  # DATA004 reports it
        return None


@rule(
    "DATA005",
    _RANGE,
    source="ir.txt",
    over="model",
    bad=(
        _outside(_HERE, "offset=4"),
        _outside(_HERE, "length=12"),
        _outside(_HERE, "offset=-4"),
        _outside(_HERE, "offset=0_0"),
        _outside(_HERE, fields="dims: 5 data_type: 1"),
    ),
    good=_GOOD,
)
def range_fits(survey: Survey) -> Iterator[Problem]:
    """Offset and length are numbers, the length is what type and shape need, and the file is long enough."""
    files: dict[tuple[Folder, str] | None, os.stat_result | None] = {}
    for external in _all(survey):
        if external.size is None:
            continue
        file = external.file
        if file not in files:
            files[file] = _looked(file)
        status = files[file]
        try:
            extent = extent_of(external.entries, external.size)
            if status is not None:
                extent.check(status.st_size)
        except ExternalDataError as error:
            yield Problem(str(error), external.where)


@rule(
    "DATA006",
    "It MAY also specify a SHA1 digest of the file.",
    source="ir.txt",
    over="model",
    bad=(_outside(_HERE, f"checksum={'0' * 40}"), _outside(_HERE, "checksum=12")),
    good=_outside(_HERE, "checksum=c26df9440df999ae7d765499acd5ca855709702f"),
)
def digest_is_right(survey: Survey) -> Iterator[Problem]:
    """A checksum is the SHA1 of its file; files over 64 MiB in total are read only with `verify`."""
    size, files = 0, set[tuple[Folder, str]]()
    for external in _all(survey):
        stated, file = external.entries.get("checksum"), external.file
        if stated is not None and not _DIGEST.fullmatch(stated):
            message = f"the checksum {quote(stated)} is not a SHA1 digest"
            yield Problem(message, external.where, "it has 40 hexadecimal digits")
        elif stated is not None and file is not None and file not in files:
            files.add(file)
            status = _looked(file)
            size += 0 if status is None else status.st_size
    if files and (survey.verify or size <= _ALWAYS_READ):
        for problem in external_problems(survey.model, checksums=True):
            if problem.kind == "checksum":
                yield Problem(problem.message, problem.where, "the file was changed or replaced")


@rule(
    "DATA007",
    "An offset is a multiple of 4096, so that the file can be mapped.",
    source="onnx.proto",
    over="model",
    severity="warning",
    group="pedantic",
    note="the text says SHOULD, and exporters write tensors without padding",
    bad=_with(_range(0, 4), _range(4, 12)),
    good=_GOOD,
)
def offset_on_a_page(survey: Survey) -> Iterator[Problem]:
    """The data of an external tensor begins at a page boundary of its file."""
    for external in _all(survey):
        offset = external.entries.get("offset", "0")
        if _NUMBER.fullmatch(offset) and int(offset) % _PAGE:
            message = f"the offset {offset} is not a multiple of {_PAGE}"
            yield Problem(message, external.where, "`sabir unpack` aligns it")


@rule(
    "DATA008",
    "The entries of external data are location, offset, length and checksum.",
    source="onnx.proto",
    over="model",
    severity="warning",
    note="a reader ignores unknown entries",
    bad=_outside(_HERE, "compression=zip"),
    good=_GOOD,
)
def known_entries(survey: Survey) -> Iterator[Problem]:
    """An external tensor has only entries that the standard defines."""
    for external in _all(survey):
        for key in external.entries:
            if key not in _KNOWN:
                yield Problem(f"the standard has no entry {quote(key)} of external data", external.where)


@rule(
    "DATA009",
    "One file MAY contain the data for multiple tensors.",
    source="ir.txt",
    over="model",
    severity="warning",
    note="tensors may share all bytes; a partial overlap usually means that one overwrote the other",
    bad=_with(_range(0, 12), _range(4, 12)),
    good=(_with(_range(0, 4), _range(4, 12)), _with(_range(4, 12), _range(4, 12))),
)
def ranges_apart(survey: Survey) -> Iterator[Problem]:
    """Two tensors share all bytes of a range in a file, or none."""
    for problem in external_problems(survey.model) if survey.external else ():
        if problem.kind == "overlap":
            yield Problem(problem.message, problem.where)


@rule(
    "DATA010",
    "The strings of a tensor are in string_data; a file of external data contains the bytes of raw_data.",
    source="onnx.proto",
    over="model",
    bad=_outside(_HERE, fields="dims: 4 data_type: 8"),
    good=_GOOD,
)
def no_strings(survey: Survey) -> Iterator[Problem]:
    """A tensor of strings is not external."""
    for external in _all(survey):
        element = external.message.element
        if element is not None and element.kind == "string":
            yield Problem(
                "the tensor is external, but has strings", external.where, "store strings in the model"
            )


@rule(
    "DATA011",
    "The entries of external data locate a tensor's data if its data_location is EXTERNAL.",
    source="onnx.proto",
    over="tensor",
    severity="warning",
    note="nothing reads them",
    bad=_with(f'dims: 1 data_type: 1 float_data: 1 external_data {{ key: "location" value: "{_DATA}" }}'),
    good=_GOOD,
)
def entries_that_count(site: TensorSite) -> Iterator[Problem]:
    """A tensor with its data in the model has no external_data entries."""
    message = site.message
    if message is not None and not message.is_external and "external_data" in message.present:
        message = "the tensor is not external, but has external_data entries"
        yield Problem(message, site.where, "drop the entries, or set data_location to EXTERNAL")


@rule(
    "DATA012",
    "Each entry of external data occurs once.",
    source="practice",
    over="model",
    note="readers take the first or the last of two entries, and read different bytes",
    bad=_outside(_HERE, "location=other.data", _HERE),
    good=_GOOD,
)
def entries_once(survey: Survey) -> Iterator[Problem]:
    """Each key of external_data occurs once."""
    for external in _all(survey):
        counts = Counter(e.key for e in external.tensor.proto.external_data)
        for key in _LOCATING:
            if counts[key] > 1:
                message = f"the entry `{key}` occurs {counts[key]} times"
                yield Problem(message, external.where, "keep the intended one")


@rule(
    "DATA013",
    "A location is relative to the directory where the model was stored.",
    source="onnx.proto",
    over="model",
    severity="warning",
    note="the API of `onnx` can write the entry `basepath`, and no reader uses it, not even `onnx`",
    bad=_outside(_HERE, "basepath=data"),
    good=(*_GOOD, _outside(_HERE, "basepath=")),
)
def no_base_path(survey: Survey) -> Iterator[Problem]:
    """An external tensor has no `basepath`, which readers would have to prepend to its location."""
    for external in _all(survey):
        base = external.entries.get(_BASEPATH)
        if base:
            message = f"the entry `{_BASEPATH}` is {quote(base)}, but readers ignore it: they read"
            hint = f"put the folder into `location`, and remove `{_BASEPATH}`"
            yield Problem(f"{message} {quote(external.location)}", external.where, hint)
