"""The model of a session: loaded and bound, or a file that an earlier process has described in the cache.

A session whose plan is on the disk needs little of its model: the names and types of inputs and outputs. So
these are kept for the file, and the next process reads the model only if it needs another plan.
"""

from __future__ import annotations

import functools
import hashlib
import json
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import ACCIDENTS, FileError, SabirError, without_collector
from sabir.compilation._modules import modules
from sabir.compilation._weights import identity_of_file, owner_of
from sabir.compilation.native import cache
from sabir.elements import element
from sabir.evaluation import Front
from sabir.files import MappedFile, untruncated
from sabir.ir import Expr, ExternalTensor, TensorType, all_tensors, drop_constants, symbol
from sabir.scheduling import ValueInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.files import OpenedFile
    from sabir.ir import Array, Dim, Model
    from sabir.scheduling import Schedule

KIND = "models"
_FORMAT = "1"  # another number for another form of the entry
_SUFFIX = ".onnx"


class Description(NamedTuple):
    """What a session needs of a model that it does not read: its representation, and its ports."""

    name: str
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]


class Subject:
    """The model of a session, a snapshot; several threads may read it.

    `defaults` are those of the inputs, `numbers` is how many numbers the constants have, and `schedule` is
    what the model was bound to: None for a model that is not read yet. `file` is what it was loaded from, if
    nobody has changed it since.

    >>> from sabir.compilation._binding import bound_subject
    >>> from sabir.opsets import STANDARD
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> bound_subject(model, STANDARD, None, None, newer_opsets=False).description.outputs[0].name
    'y'
    """

    def __init__(
        self, description: Description, numbers: int, defaults: Sequence[Array | None],
        file: OpenedFile | None, model: Model | None = None, scheduled: Schedule | None = None, *,
        newer_opsets: bool,
    ) -> None:  # fmt: skip
        self.description, self.numbers, self.defaults = description, numbers, defaults
        self.file, self.schedule, self._newer_opsets = file, scheduled, newer_opsets
        self._model: Model | None = None
        if model is not None:
            self._take(model)

    def front(self) -> Front:
        """Return what is in front of runs; raises SchemaError where two outputs have one name."""
        ports = self.description
        slots = [v.slot for v in ports.inputs]
        defaults = {s: d for s, d in zip(slots, self.defaults, strict=True) if d is not None}
        if self.schedule is None:
            return Front(ports.inputs, ports.outputs, defaults, numbers=self.numbers)
        return Front.of(self.schedule, defaults, numbers=self.numbers)

    @property
    def has_turns(self) -> bool:
        """Whether a call runs more than one node, and nobody has counted the numbers of these."""
        return self.schedule is not None and any(call.cost > 1 for call in self.schedule.program.calls)

    @functools.cached_property
    def identity(self) -> str | None:
        """What identifies the contents of the model, None where no file does."""
        if self.file is None or (self._model is not None and _has_external(self._model)):
            return None
        return identity_of_contents(self.file.data)

    @property
    def model(self) -> Model:
        """The model; raises FileError where its file was changed before anything needed the model."""
        if self._model is None:
            self._take(self._read())
        return cast("Model", self._model)

    def _take(self, model: Model) -> None:
        self._model = model
        weakref.finalize(self, _drop, model).atexit = False

    def _read(self) -> Model:
        # ruff: ignore[import-outside-top-level]  readers load slowly, and few sessions of such a file need them
        from sabir.serial import load_opened

        file = cast("OpenedFile", self.file)
        if identity_of_contents(file.data) != self.identity:
            raise FileError(f"{file.path}: the file was changed since its session was made; make a new one")
        with without_collector():
            return load_opened(file)

    # ------------------------------------------------------------ constants

    def place_of(self, array: Array) -> int | None:
        """Return where the bytes of an array are in the file; None where they are not, or not in order."""
        if self.identity is None or self.file is None or not array.flags.c_contiguous:
            return None
        whole: Array = np.frombuffer(self.file.data, np.uint8)
        if not array.size or owner_of(array) is not owner_of(whole):
            return None
        return int(array.ctypes.data) - int(whole.ctypes.data)

    def array_at(self, place: int, kind: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Return the array at a place of the file; raises ValueError where the file ends before."""
        if self.file is None:
            raise ValueError("the model is from no file")
        data = untruncated(self.file.data)
        return np.frombuffer(data, kind, int(np.prod(shape)), place).reshape(shape)

    # ------------------------------------------------------------ the cache

    def keep(self) -> None:
        """Describe the model in the cache, if a session can be made of the description alone."""
        scheduled, key = self.schedule, None
        if self.file is not None and self.identity is not None:
            key = _key(self.file, self.identity, newer_opsets=self._newer_opsets)
        if scheduled is None or key is None or scheduled.notes or scheduled.experimental:
            return
        if any(default is not None for default in self.defaults):
            return
        shown = _shown(self.description, self.numbers)
        if shown is not None and _read(key) is None:
            cache().put(KIND, key, json.dumps(shown).encode())


def known_subject(file: OpenedFile, *, newer_opsets: bool) -> Subject | None:
    """Return the subject of a file that the cache describes; None where it does not.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sabir.files import opened_file
    >>> with TemporaryDirectory() as folder:
    ...     size = Path(folder, 'new.onnx').write_bytes(b'no model')
    ...     print(known_subject(opened_file(Path(folder, 'new.onnx')), newer_opsets=False))
    None
    """
    if cache().folder is None or file.path.suffix.lower() != _SUFFIX:
        return None
    identity = identity_of_contents(file.data)
    key = None if identity is None else _key(file, identity, newer_opsets=newer_opsets)
    found = None if key is None else _read(key)
    if found is None:
        return None
    described, numbers = found
    return Subject(described, numbers, [None] * len(described.inputs), file, newer_opsets=newer_opsets)


def identity_of_contents(data: memoryview) -> str | None:
    """Return what identifies the bytes of a file; None for a mapped one that was changed a moment ago."""
    if isinstance(data.obj, MappedFile):
        return identity_of_file(data.obj)
    return f"data {hashlib.sha256(data).hexdigest()}"


def _key(file: OpenedFile, identity: str, *, newer_opsets: bool) -> bytes | None:
    """Return the key of a description: what the file contains, and the modules that read it."""
    if modules() is None:
        return None
    said = f"{_FORMAT} {modules()} {file.path.suffix.lower()} {identity} {newer_opsets}"
    return hashlib.sha256(said.encode(errors="surrogatepass")).digest()


def _shown(described: Description, numbers: int) -> list[Any] | None:
    """Return a description as lists, numbers and texts; None where a port has a type that is not written."""
    ports = [list(map(_shown_port, side)) for side in (described.inputs, described.outputs)]
    if any(port is None for side in ports for port in side):
        return None
    return [described.name, numbers, *ports]


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


def _read(key: bytes) -> tuple[Description, int] | None:
    """Return the description in the entry of a key, and the number; None where it has something else."""
    data = cache().get(KIND, key, verify=True)
    if data is None:
        return None
    try:
        name, numbers, inputs, outputs = json.loads(bytes(data))
        return Description(str(name), tuple(map(_port, inputs)), tuple(map(_port, outputs))), int(numbers)
    except (SabirError, *ACCIDENTS):
        return None


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


def _has_external(model: Model) -> bool:
    return any(isinstance(tensor, ExternalTensor) for tensor, *_ in all_tensors(model))


def _drop(model: Model) -> None:
    for graph in model.graphs():
        drop_constants(graph)
