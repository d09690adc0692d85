"""Descriptions of models in the cache: what a session needs of a file that it does not read."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sabir.base import ACCIDENTS, SabirError
from sabir.compilation.cache.identities import identity_of_status
from sabir.compilation.cache.modules import modules
from sabir.compilation.native import cache
from sabir.elements import element
from sabir.ir import Expr, TensorType, symbol
from sabir.scheduling import ValueInfo

if TYPE_CHECKING:
    from sabir.files import OpenedFile
    from sabir.ir import Dim

KIND = "models"
_FORMAT = "1"  # another number for another form of the entry
_SUFFIX = ".onnx"


class Ports(NamedTuple):
    """The inputs and outputs of a model."""

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]


class FileConstant(NamedTuple):
    """Where the elements of a constant begin in a file, row by row; their type and the shape."""

    start: int
    element: str
    shape: tuple[int, ...]


class Description(NamedTuple):
    """What a session needs of a model that it does not read.

    `name` is how it shows the model, `structure` what the plans of the model are known by, `numbers` how many
    numbers its constants have. `places` are those of initializers, by name.
    """

    name: str
    structure: str
    numbers: int
    ports: Ports
    places: dict[str, FileConstant]


def described(file: OpenedFile, *, newer_opsets: bool) -> Description | None:
    """Return the description of a file, None where the cache has none."""
    key = _key(file, newer_opsets=newer_opsets)
    data = None if key is None else cache().get(KIND, key, verify=True)
    if data is None:
        return None
    try:
        return _read(json.loads(bytes(data)), len(file.data))
    except (SabirError, *ACCIDENTS):
        return None


def describe(description: Description, file: OpenedFile, *, newer_opsets: bool) -> None:
    """Keep the description of a file, unless it is there or has a type that is not written."""
    key, shown = _key(file, newer_opsets=newer_opsets), _shown(description)
    if key is not None and shown is not None and described(file, newer_opsets=newer_opsets) is None:
        cache().put(KIND, key, json.dumps(shown).encode())


def identity_of_opened(file: OpenedFile) -> str | None:
    """Return what identified the contents of a file when it was opened; None if it had just been changed."""
    return identity_of_status(file.status)


def _key(file: OpenedFile, *, newer_opsets: bool) -> bytes | None:
    """Return the key of a description: what the file contains, and the modules that read it."""
    if cache().folder is None or file.path.suffix.lower() != _SUFFIX:
        return None
    identity = identity_of_opened(file)
    if identity is None or modules() is None:
        return None
    return hashlib.sha256(f"{_FORMAT} {modules()} {identity} {newer_opsets}".encode()).digest()


# ---------------------------------------------------------------- the form of an entry


def _shown(description: Description) -> list[Any] | None:
    """Return a description as lists, numbers and texts; None where a port has a type that is not written."""
    ports = [list(map(_shown_port, side)) for side in description.ports]
    if any(port is None for side in ports for port in side):
        return None
    return [*description._replace(ports=cast("Any", ports))]


def _shown_port(port: ValueInfo) -> list[Any] | None:
    kind = port.type
    if not isinstance(kind, TensorType) or kind.note is not None or kind.known is not None:
        return None
    if kind.shape is None:
        return [port.name, port.slot, kind.element.number, None]
    dims = [str(dim) if isinstance(dim, Expr) else dim for dim in kind.shape]
    for dim, said in zip(kind.shape, dims, strict=True):
        if isinstance(dim, Expr) and symbol(str(said)) != dim:
            return None
    return [port.name, port.slot, kind.element.number, dims]


def _read(shown: Any, size: int) -> Description:
    """Return a description; raises ValueError, TypeError and SabirError for what is none of a file."""
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
    name, slot, number, dims = shown
    if not isinstance(dims, list | None):
        raise TypeError(f"{dims!r} is no shape")
    shape = None if dims is None else tuple(map(_dim, cast("list[object]", dims)))
    return ValueInfo(str(name), TensorType(element(number), shape), int(slot))


def _dim(shown: object) -> Dim:
    match shown:
        case None | int():
            return shown
        case str():
            return symbol(shown)
        case _:
            raise TypeError(f"{shown!r} is no dimension")
