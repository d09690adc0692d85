"""Plans on disk: what was planned once is run by the next process without planning it again.

A plan is found by all that it depends on: the structure of the model with its small constants, the identity
of the files that have the large ones, the pattern of shapes, the processor, and the modules of Sabir. Only a
plan of kernels alone is kept: an evaluated call refers to the program that it is a part of.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle  # ruff: ignore[suspicious-pickle-import]  `_Reader` imports plans' classes only
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir._version import __version__
from sabir.base import ACCIDENTS, SabirError, without_collector
from sabir.compilation._executable import Executable
from sabir.compilation._plan import Entry, StoredKernel
from sabir.compilation._weights import identity_of, identity_of_file
from sabir.compilation.native import cache
from sabir.elements import STRING, element, to_field
from sabir.files import MappedFile
from sabir.ir import ExternalTensor, Tensor, WireTensor, all_tensors
from sabir.serial import ModelWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sabir.compilation._patterns import Pattern
    from sabir.compilation._plan import Plan
    from sabir.compilation._program import CompiledProgram
    from sabir.compilation.native import Host, Image
    from sabir.ir import Array, Constant, Model

KIND = "plans"
_FORMAT = "3"  # another number for another form of stored plans
_SMALL = 1 << 16  # bytes of a constant that are a part of the key, and from there on the identity of a file
_MOST_HASHED = 1 << 24  # bytes of large constants that are in no file
_MOST_KEPT = 1 << 24  # bytes of computed constants that are kept with a plan


class StoredPlans:
    """The plans on disk of one model."""

    def __init__(
        self, model: Model, host: Host, *, newer_opsets: bool, as_loaded: bool, updates: Mapping[str, str]
    ) -> None:
        self._model, self._as_loaded = model, as_loaded
        self._about = f"{host!r} {newer_opsets} {sorted(updates.items())}"

    @functools.cached_property
    def _digest(self) -> str | None:
        """The digest of the model and of all else that its plans depend on; None where it has none."""
        modules = _modules()
        try:
            structure = (_file(self._model) if self._as_loaded else None) or _structure(self._model)
        except (SabirError, *ACCIDENTS):
            return None  # a message cannot contain it, or its data cannot be read: a run says so
        return modules and structure and f"{_FORMAT} {modules} {structure} {self._about}"

    def key(self, pattern: Pattern) -> bytes | None:
        """Return the key of the plan for a pattern; None where no plan of the model is kept."""
        if cache().folder is None or self._digest is None:
            return None
        return hashlib.sha256(f"{self._digest} {pattern!r}".encode(errors="surrogatepass")).digest()

    def read(self, key: bytes) -> tuple[Executable, dict[bytes, Image]] | None:
        """Return the plan with a key and the images of its kernels, None where there is none."""
        data = cache().get(KIND, key, verify=True)
        if data is None:
            return None
        try:
            with without_collector():
                plan, rest, constants, images = _Reader(io.BytesIO(data)).load()
            arrays = {slot: self._array(constant) for slot, constant in constants.items()}
            return Executable(plan, constants=arrays, **rest), dict(map(_checked, images.items()))
        except (SabirError, *ACCIDENTS, pickle.UnpicklingError, EOFError, ImportError):
            return None  # of another version; it is replaced by the plan that is made now

    def write(self, key: bytes, program: CompiledProgram) -> None:
        """Keep a plan, unless it has evaluated calls or too large constants."""
        executable, prepared = program.executable, program.prepared
        if prepared is None or not program.is_native:
            return
        constants = self._constants(executable, prepared.program.constants)
        if constants is None:
            return
        rest = executable._asdict()
        del rest["plan"], rest["constants"]
        plan = _without_texts(executable.plan, program.keys)
        cache().put(KIND, key, pickle.dumps((plan, rest, constants, program.images()), protocol=5))

    def _constants(
        self, executable: Executable, tensors: Mapping[int, Constant]
    ) -> dict[int, _Constant] | None:
        """Return the constants that runs read; None where they are too large to be kept."""
        names = {id(tensor): name for name, tensor in self._by_name.items()}
        read = {b.slot for b in executable.plan.buffers if b.kind == "constant"}
        read |= {entry.buffers[0].slot for entry in executable.plan.setup}
        read |= executable.constants.keys() & executable.results
        found: dict[int, _Constant] = {}
        kept = 0
        for slot in sorted(read):
            array = executable.constants[slot]
            name = names.get(id(tensors.get(slot)))
            if name is None:
                kept += array.nbytes
            if kept > _MOST_KEPT or array.dtype.hasobject:
                return None
            shown = None if name is not None else np.ascontiguousarray(array).tobytes()
            found[slot] = _Constant(name, element(array.dtype).name, array.shape, shown)
        return found

    def _array(self, constant: _Constant) -> Array:
        if constant.data is None:
            return self._by_name[constant.name or ""].array()
        flat: Array = np.frombuffer(constant.data, element(constant.element).dtype)
        return flat.reshape(constant.shape)

    @functools.cached_property
    def _by_name(self) -> dict[str, Tensor]:
        return {v.name: t for v, t in self._model.graph.initializers.items() if isinstance(t, Tensor)}


class _Constant(NamedTuple):
    """A constant of a plan: the name of an initializer, or an element type, a shape and bytes."""

    name: str | None
    element: str
    shape: tuple[int, ...]
    data: bytes | None


def _checked(row: tuple[bytes, Image]) -> tuple[bytes, Image]:
    """Return the key and the image of a kernel; raises ValueError for what is none."""
    key, (code, entry) = row
    if not 0 <= entry < len(code):
        raise ValueError("the function is outside of its image")
    return key, row[1]


def _without_texts(plan: Plan, keys: Mapping[Any, bytes]) -> Plan:
    """Return a plan whose kernels are named by the keys of their machine code."""

    def stored(entry: Any) -> Any:
        choices = [(size, limit, StoredKernel(keys[spec]), args) for size, limit, spec, args in entry.choices]
        return replace(entry, choices=choices)

    entries = [stored(e) if isinstance(e, Entry) else e for e in plan.entries]
    return replace(plan, entries=entries, setup=[stored(e) for e in plan.setup])


_ALLOWED = frozenset({
    ("functools", "partial"),
    ("sabir.compilation._bounds", "Reach"), ("sabir.compilation._bounds", "Value"),
    ("sabir.compilation._patterns", "Guard"),
    ("sabir.compilation._plan", "Buffer"), ("sabir.compilation._plan", "BufferNumber"),
    ("sabir.compilation._plan", "Computed"), ("sabir.compilation._plan", "Entry"),
    ("sabir.compilation._plan", "Offset"), ("sabir.compilation._plan", "Plan"),
    ("sabir.compilation._plan", "StoredKernel"), ("sabir.compilation._plan", "Turns"),
    ("sabir.compilation._stored", "_Constant"),
    ("sabir.compilation.native._placing", "Image"),
    ("sabir.compilation._jobs", "rows_of_a_job"), ("sabir.compilation._jobs", "rows_of_trees"),
    ("sabir.compilation._jobs", "rows_of_attention"), ("sabir.compilation._jobs", "tiles_of_a_job"),
    ("sabir.ir._dims_algebra", "DimCall"), ("sabir.ir._dims_algebra", "Expr"),
})  # fmt: skip


class _Reader(pickle.Unpickler):  # ruff: ignore[suspicious-pickle-usage]  as above
    """Reads a plan; it imports nothing but the classes of plans."""

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not a part of plans")
        return super().find_class(module, name)


# ---------------------------------------------------------------- keys


def _file(model: Model) -> str | None:
    """Return what identifies the file of a model that nobody has changed; None where it is not one file."""
    files: set[MappedFile] = set()
    for tensor, *_ in all_tensors(model):
        if isinstance(tensor, ExternalTensor):
            return None
        view = tensor.view if isinstance(tensor, WireTensor) else None
        if isinstance(view, memoryview) and isinstance(view.obj, MappedFile):
            files.add(view.obj)
    return identity_of_file(files.pop()) if len(files) == 1 else None


def _structure(model: Model) -> str | None:
    """Return a digest of a model; None where it has large constants that nothing cheap identifies."""
    rest = _MOST_HASHED

    def tensor(tensor: Tensor, proto: Any) -> None:
        nonlocal rest
        proto.dims.extend(tensor.shape)
        proto.data_type = tensor.element.number
        if tensor.element is STRING:
            proto.string_data.extend(to_field(tensor.element, tensor.array()))
            return
        size = tensor.nbytes
        if size > _SMALL:
            identity, is_durable = identity_of(tensor.array())
            if identity is not None and is_durable:
                proto.doc_string = identity
                return
            rest -= size
            if rest < 0:
                raise SabirError("the constants in memory are too large to be hashed")
        proto.raw_data = hashlib.sha256(tensor.raw()).digest() if size > _SMALL else bytes(tensor.raw())

    return hashlib.sha256(ModelWriter(tensor).model(model).SerializeToString(deterministic=True)).hexdigest()


@functools.cache
def _modules() -> str | None:
    """Return a digest of the modules of Sabir, by their sizes and times; None where they are not files.

    What an installer has written it has listed in a file of its own, which stands for all modules.
    """
    folder = Path(__file__).parents[1]
    record = folder.parent / f"sabir-{__version__}.dist-info" / "RECORD"
    digest = hashlib.sha256()
    try:
        found = [(os.fspath(record), record.stat())]
    except OSError:
        found = sorted(_sources(os.fspath(folder))) if folder.is_dir() else []
    for path, status in found:
        said = f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ino}\n"
        digest.update(said.encode(errors="surrogatepass"))
    return digest.hexdigest() if found else None


def _sources(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(".py"):
                yield entry.path, entry.stat()
            elif name != "__pycache__" and entry.is_dir():
                yield from _sources(entry.path)
