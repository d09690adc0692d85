"""Which tensors leave the model file, and where in which data file each of them goes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from sabir.base import ExternalDataError, UnsupportedError, WireError, quote
from sabir.elements import STRING, find_element, packed_size
from sabir.files import is_device_name, parts_of
from sabir.ir import ExternalTensor, WireTensor, all_tensors
from sabir.serial._external import CopyCount, Folder
from sabir.serial._safetensors import METADATA, PlacedTensor, header_of
from sabir.serial._streams import stream_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.files import LazyBytes
    from sabir.ir import Buffer, Model, Tensor, TensorPlace

Key: TypeAlias = "tuple[object, ...]"

_PATTERN = "{name}"
_SAFETENSORS = ".safetensors"
_UNSAFE = re.compile(r"[^\w.-]+", re.ASCII)
_MAX_NAME = 100
_DATA_FIELDS = (
    "raw_data",
    "float_data",
    "int32_data",
    "int64_data",
    "double_data",
    "uint64_data",
    "string_data",
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of data beside a model.

    `location` names the one data file; with `{name}` in it each tensor gets a separate file. Tensors of
    fewer than `threshold` bytes stay in the model. Each begins at a multiple of `align` bytes. `shard` is the
    maximum size of a file, unless a single tensor is larger. `checksum` requests SHA1 digests.
    """

    location: str
    threshold: int = 1024
    align: int = 4096
    shard: int | None = None
    checksum: bool = False

    def __post_init__(self) -> None:
        """Raise ExternalDataError for a location outside the folder, ValueError for invalid numbers."""
        parts_of(self.location)
        if self.threshold < 0 or self.align < 1 or (self.shard is not None and self.shard < 1):
            raise ValueError("threshold must be at least 0, align and shard at least 1")
        if self.shard is not None and _PATTERN in self.location:
            raise ValueError("with `{name}` each tensor gets a separate file, and `shard` cannot be used")


@dataclass(eq=False, slots=True)
class DataFile:
    """A data file: the tensors in it, and once it is written its SHA1 digest."""

    location: str
    tensors: list[PlacedTensor] = field(default_factory=list[PlacedTensor])
    head: bytes = b""
    size: int = 0
    digest: str = ""

    def chunks(self) -> Iterator[Buffer | LazyBytes]:
        """Yield the bytes of the file; raises ExternalDataError where data to be moved is not found."""
        yield self.head
        at = len(self.head)
        for one in self.tensors:
            yield bytes(one.offset - at)
            yield _exactly(stream_of(one.tensor), one)
            at = one.offset + one.size


def _exactly(data: Buffer | LazyBytes, one: PlacedTensor) -> Buffer | LazyBytes:
    if len(data) != one.size:
        raise WireError(f"tensor {quote(one.name)}: {one.size} bytes were expected, and it has {len(data)}")
    return data


class Placement:
    """The data files of one model, and for each tensor in them the entries that locate it."""

    def __init__(self, model: Model, layout: Layout) -> None:
        """Lay out the data; raises ExternalDataError where some to be moved is not found."""
        found = _movable(model, layout.threshold)
        self.files = [_file(*group, layout) for group in _grouped(found, layout)]
        self._places = {_key(one.tensor): (file, one) for file in self.files for one in file.tensors}
        self.checksum = layout.checksum
        self.locations = {file: file.location for file in self.files}

    @property
    def size(self) -> int:
        """The size of all files together."""
        return sum(file.size for file in self.files)

    def entries(self, tensor: Tensor) -> list[tuple[str, str]] | None:
        """Return the `external_data` of a tensor, or None where it stays in the model."""
        found = self._places.get(_key(tensor)) if self._places else None
        if found is None:
            return None
        file, one = found
        entries = [
            ("location", self.locations[file]), ("offset", str(one.offset)), ("length", str(one.size)),
        ]  # fmt: skip
        return [*entries, ("checksum", file.digest)] if self.checksum else entries


def _movable(model: Model, threshold: int) -> list[PlacedTensor]:
    """Return the tensors to be moved; data that several tensors share is there once."""
    found: dict[Key, PlacedTensor] = {}
    copied = CopyCount()
    for place in all_tensors(model):
        size = _size(place)
        key = _key(place.tensor)
        if size and size >= threshold and key not in found:
            found[key] = PlacedTensor(place.tensor, place.name, size)
            if isinstance(place.tensor, ExternalTensor):
                copied.add(place.tensor)
    return list(found.values())


def largest_movable(model: Model) -> tuple[str, int] | None:
    """Return the name and the bytes of the largest tensor whose data may leave the model, if there is one.

    >>> b = sabir.Builder(21)
    >>> w = b.initializer('w', np.zeros(1000, np.float32))
    >>> largest_movable(b.model())
    ('w', 4000)
    """
    sizes = ((place.name, _size(place)) for place in all_tensors(model))
    return max(((name, size) for name, size in sizes if size), key=itemgetter(1), default=None)


def _size(place: TensorPlace) -> int | None:
    """Return how many bytes a tensor takes in a data file; None for strings and malformed data."""
    tensor = place.tensor
    if isinstance(tensor, ExternalTensor):
        if find_element(tensor.proto.data_type) is STRING:
            return None
        try:
            _, size = tensor.place()
            stream_of(tensor)
        except ExternalDataError as error:
            raise error.located(str(place.where)) from error
        return size
    if isinstance(tensor, WireTensor):
        return _wire_size(tensor)
    return None if tensor.element is STRING else tensor.nbytes


def _wire_size(tensor: WireTensor) -> int | None:
    proto, element = tensor.proto, find_element(tensor.proto.data_type)
    if element is None or element is STRING or any(d < 0 for d in proto.dims) or proto.HasField("segment"):
        return None
    filled = [name for name in _DATA_FIELDS if len(getattr(proto, name))]
    if filled not in ([], ["raw_data"], [element.field]):
        return None
    size = packed_size(element, tensor.size)
    if proto.HasField("raw_data"):
        return size if len(proto.raw_data if tensor.view is None else tensor.view) == size else None
    try:
        return len(tensor.raw()) if size else None
    except (WireError, UnsupportedError):
        return None


def _key(tensor: Tensor) -> Key:
    """Return what identifies the data of a tensor: it is equal for two that share bytes of a file."""
    if isinstance(tensor, ExternalTensor) and isinstance(tensor.opener, Folder):
        entries, element = tensor.entries, find_element(tensor.proto.data_type)
        location, offset = entries.get("location", ""), entries.get("offset", "0")
        return id(tensor.opener), location, offset, element, tensor.shape
    return (id(tensor),)


def _grouped(found: list[PlacedTensor], layout: Layout) -> Iterator[tuple[str, list[PlacedTensor]]]:
    """Yield the location of each data file, and the tensors for it."""
    if not found:
        return
    if _PATTERN in layout.location:
        names = unique((plain_name(one.name) for one in found), fold=True)
        for one, name in zip(found, names, strict=True):
            yield layout.location.replace(_PATTERN, name), [one]
        return
    shards = _shards(found, layout)
    if len(shards) == 1:
        yield layout.location, shards[0]
        return
    path = PurePosixPath(layout.location)
    for number, shard in enumerate(shards, 1):
        yield str(path.with_name(f"{path.stem}-{number:05}-of-{len(shards):05}{path.suffix}")), shard


def _shards(found: list[PlacedTensor], layout: Layout) -> list[list[PlacedTensor]]:
    """Fill one shard after another, in the model's order."""
    shards: list[list[PlacedTensor]] = [[]]
    filled = 0
    for one in found:
        start = _aligned(filled, layout.align)
        if layout.shard is not None and shards[-1] and start + one.size > layout.shard:
            shards.append([])
            start = 0
        shards[-1].append(one)
        filled = start + one.size
    return shards


def _file(location: str, tensors: list[PlacedTensor], layout: Layout) -> DataFile:
    if location.lower().endswith(_SAFETENSORS):
        return _safetensors(location, tensors, layout.align)
    file, at = DataFile(location, tensors), 0
    for one in tensors:
        one.offset = _aligned(at, layout.align)
        at = one.offset + one.size
    file.size = at
    return file


def _safetensors(location: str, tensors: list[PlacedTensor], align: int) -> DataFile:
    """Lay out a safetensors file, which has no gaps: wide elements first, so that all are aligned."""
    names = unique((one.name if one.name != METADATA else "" for one in tensors), fold=False)
    for one, name in zip(tensors, names, strict=True):
        one.name = name
    ordered = sorted(tensors, key=lambda one: (-one.tensor.element.bits, one.name))
    file = DataFile(location, ordered, header_of(ordered, align))
    at = len(file.head)
    for one in ordered:
        one.offset = at
        at += one.size
    file.size = at
    return file


def unique(names: Iterable[str], *, fold: bool) -> list[str]:
    """Return names made unique by numbers; `fold` ignores case, as some file systems do."""
    seen: set[str] = set()
    renamed: list[str] = []
    numbers: dict[str, int] = {}
    for original in names:
        stem = original or "tensor"
        name = stem
        while (name.casefold() if fold else name) in seen:
            numbers[stem] = numbers.get(stem, 0) + 1
            name = f"{stem}_{numbers[stem]}"
        seen.add(name.casefold() if fold else name)
        renamed.append(name)
    return renamed


def plain_name(name: str) -> str:
    """Return a tensor's name as a valid file name on any system."""
    plain = _UNSAFE.sub("_", name)[:_MAX_NAME].strip(".")
    return f"_{plain}" if is_device_name(plain) else plain


def _aligned(size: int, align: int) -> int:
    return -(-size // align) * align
