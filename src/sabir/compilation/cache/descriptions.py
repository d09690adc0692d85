"""Descriptions of model files in the cache: enough for a session that does not read the file."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sabir.base import ACCIDENTS, SabirError
from sabir.compilation.cache.identities import identity_of_status
from sabir.compilation.cache.modules import modules
from sabir.compilation.disk import cache
from sabir.elements import element
from sabir.ir import Expr, MapType, SequenceType, TensorType, symbol
from sabir.scheduling import ValueInfo

if TYPE_CHECKING:
    from sabir.files import OpenedFile
    from sabir.ir import Dim, Type

KIND = "models"
_FORMAT = "2"  # increased when the format of an entry changes
_SUFFIX = ".onnx"
_TENSOR, _SEQUENCE, _MAP = "tensor", "sequence", "map"


class Ports(NamedTuple):
    """The inputs and outputs of a model."""

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]


class FileConstant(NamedTuple):
    """A constant in a file, in row-major order: the offset of its first byte, element type and shape."""

    start: int
    element: str
    shape: tuple[int, ...]


class Description(NamedTuple):
    """The facts of a model that a session needs if it does not read the file.

    `name` is the text that a session shows, `structure` the identity of the model in keys of plans, `numbers`
    the number of elements of its constants, `places` the initializers in the file by name.
    """

    name: str
    structure: str
    numbers: int
    ports: Ports
    places: dict[str, FileConstant]


def described(file: OpenedFile, *, newer_opsets: bool) -> Description | None:
    """Return the description of a file; None if the cache has none."""
    key = _key(file, newer_opsets=newer_opsets)
    data = None if key is None else cache().get(KIND, key, verify=True)
    if data is None:
        return None
    try:
        return _read(json.loads(bytes(data)), len(file.data))
    except (SabirError, *ACCIDENTS):
        return None


def describe(description: Description, file: OpenedFile, *, newer_opsets: bool) -> None:
    """Write the description of a file to the cache, if it is new and can be written."""
    key, shown = _key(file, newer_opsets=newer_opsets), _shown(description)
    if key is not None and shown is not None and described(file, newer_opsets=newer_opsets) is None:
        cache().put(KIND, key, json.dumps(shown).encode())


def identity_of_opened(file: OpenedFile) -> str | None:
    """Return the identity of the contents of a file when it was opened; None if it had just changed."""
    return identity_of_status(file.status)


def _key(file: OpenedFile, *, newer_opsets: bool) -> bytes | None:
    """Return the key of a description: the identity of the file, and of the modules that read it."""
    if cache().folder is None or file.path.suffix.lower() != _SUFFIX:
        return None
    identity = identity_of_opened(file)
    if identity is None or modules() is None:
        return None
    return hashlib.sha256(f"{_FORMAT} {modules()} {identity} {newer_opsets}".encode()).digest()


# ---------------------------------------------------------------- the format of an entry


def _shown(description: Description) -> list[Any] | None:
    """Return a description as lists, numbers and texts; None if the type of a port cannot be written."""
    ports = [list(map(_shown_port, side)) for side in description.ports]
    if any(port is None for side in ports for port in side):
        return None
    return [*description._replace(ports=cast("Any", ports))]


def _shown_port(port: ValueInfo) -> list[Any] | None:
    try:
        return [port.name, port.slot, _shown_type(port.type)]
    except TypeError:
        return None


def _shown_type(kind: Type | None) -> list[Any] | None:
    """Return a type as lists, numbers and texts; raises TypeError for one that cannot be written."""
    match kind:
        case None:
            return None
        case TensorType(note=None, known=None):
            return [
                _TENSOR,
                kind.element.number,
                None if kind.shape is None else [*map(_shown_dim, kind.shape)],
            ]
        case SequenceType(note=None):
            return [_SEQUENCE, _shown_type(kind.item)]
        case MapType(note=None):
            return [_MAP, kind.key.number, _shown_type(kind.value)]
        case _:
            raise TypeError(f"{kind} is not described")


def _shown_dim(dim: Dim) -> int | str | None:
    text = str(dim)
    if isinstance(dim, Expr) and symbol(text) != dim:
        raise TypeError(f"{text} is no symbol")
    return text if isinstance(dim, Expr) else dim


def _read(shown: Any, size: int) -> Description:
    """Read a description; raises ValueError, TypeError or SabirError for invalid data."""
    name, structure, numbers, (inputs, outputs), shown_places = shown
    ports = Ports(tuple(map(_port, inputs)), tuple(map(_port, outputs)))
    places = {
        str(key): FileConstant(int(at), str(kind), tuple(map(int, dims)))
        for key, (at, kind, dims) in shown_places.items()
    }
    if any(not 0 <= place.start < size or min(place.shape, default=0) < 0 for place in places.values()):
        raise ValueError("a constant is outside of the file")
    return Description(str(name), str(structure), int(numbers), ports, places)


def _port(shown: Any) -> ValueInfo:
    name, slot, kind = shown
    return ValueInfo(str(name), _type(kind), int(slot))


def _type(shown: Any) -> Type | None:
    """Read a type; raises ValueError, TypeError or SabirError for invalid data."""
    if shown is None:
        return None
    form, *parts = shown
    if form == _SEQUENCE:
        (item,) = parts
        return SequenceType(_type(item))
    if form == _MAP:
        key, value = parts
        return MapType(element(key), _type(value))
    number, dims = parts
    if form != _TENSOR or not isinstance(dims, list | None):
        raise TypeError(f"{shown!r} is no type")
    shape = None if dims is None else tuple(map(_dim, cast("list[object]", dims)))
    return TensorType(element(number), shape)


def _dim(shown: object) -> Dim:
    match shown:
        case None | int():
            return shown
        case str():
            return symbol(shown)
        case _:
            raise TypeError(f"{shown!r} is no dimension")
