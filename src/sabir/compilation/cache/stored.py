"""Plans on disk: a later process runs a stored plan without planning.

The key of a plan is a digest of all that it depends on: the structure of the model with its small constants,
the identity of the files of large constants, the shape pattern, the processor, and the modules of Sabir. Only
a plan without evaluated calls is stored: such a call refers to its program.
"""

from __future__ import annotations

import functools
import hashlib
import io
import pickle  # ruff: ignore[suspicious-pickle-import]  `_Reader` imports plans' classes only
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from sabir.base import ACCIDENTS, SabirError, without_collector
from sabir.compilation.cache.modules import modules
from sabir.compilation.disk import cache
from sabir.compilation.plan.entries import Entry, StoredKernel
from sabir.compilation.plan.executable import Executable
from sabir.elements import element

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.compilation.frontend.patterns import ShapePattern
    from sabir.compilation.frontend.subject import Subject
    from sabir.compilation.native import Image
    from sabir.compilation.plan.entries import BandParts, KernelPlan
    from sabir.compilation.protocol import Backend, Runnable
    from sabir.compilation.settings import Settings
    from sabir.ir import Array, Constant

KIND = "plans"
_FORMAT = "8"  # increased when the format of stored plans changes
_SMALL = 1 << 16  # bytes of a constant that is stored in a plan, unless a file has it in the same form
_MOST_KEPT = 1 << 24  # bytes of computed constants that are stored with a plan


StoredPlan: TypeAlias = "tuple[Executable, dict[bytes, Image]]"
"""A plan that was read, and the machine code of its kernels by key."""


class StoredPlans:
    """The plans on disk of one model."""

    def __init__(
        self,
        subject: Subject,
        backend: Backend,
        settings: Settings,
        updates: Mapping[str, str],
    ) -> None:
        self._subject = subject
        self._about = f"{backend.key} {settings.key} {sorted(updates.items())}"

    @functools.cached_property
    def _digest(self) -> str | None:
        """The part of the keys that all plans of the model share; None if the model has no identity."""
        try:
            structure = self._subject.structure
        except (SabirError, *ACCIDENTS):
            return None  # it cannot be serialized, or its data cannot be read: a run reports that
        return modules() and f"{_FORMAT} {modules()} {structure} {self._about}"

    def key(self, pattern: ShapePattern) -> bytes | None:
        """Return the key of the plan for a pattern; None if plans of the model are not stored."""
        if cache().folder is None or self._digest is None:
            return None
        return hashlib.sha256(f"{self._digest} {pattern!r}".encode(errors="surrogatepass")).digest()

    def read(self, key: bytes) -> StoredPlan | None:
        """Return the plan with a key and the images of its kernels; None if there is none."""
        data = cache().get(KIND, key, verify=True)
        if data is None:
            return None
        try:
            with without_collector():
                plan, rest, constants, images = _Reader(io.BytesIO(data)).load()
            arrays = {slot: self._array(constant) for slot, constant in constants.items()}
            return Executable(plan, constants=arrays, **rest), dict(map(_checked, images.items()))
        except (SabirError, *ACCIDENTS, pickle.UnpicklingError, EOFError, ImportError):
            return None  # of another version: the new plan replaces it

    def write(self, key: bytes, program: Runnable) -> bool:
        """Store a plan, unless it has evaluated calls or too large constants; return whether it is stored."""
        found = program.portable()
        if found is None or program.prepared is None:
            return False
        executable, prepared = found.executable, program.prepared
        constants = self._constants(executable, prepared.program.constants)
        if constants is None:
            return False
        rest = executable._asdict()
        del rest["plan"], rest["constants"]
        plan = _without_texts(executable.plan, found.keys)
        return cache().put(KIND, key, pickle.dumps((plan, rest, constants, found.images), protocol=5))

    def _constants(
        self, executable: Executable, tensors: Mapping[int, Constant]
    ) -> dict[int, _StoredConstant] | None:
        """Return the constants that runs read; None if they are too large to be stored."""
        names = self._subject.names_of_initializers()
        read = {b.slot for b in executable.plan.buffers if b.kind == "constant"}
        read |= {entry.buffers[0].slot for entry in executable.plan.setup}
        read |= executable.constants.keys() & executable.results
        found: dict[int, _StoredConstant] = {}
        kept = 0
        for slot in sorted(read):
            array = executable.constants[slot]
            name = names.get(id(tensors.get(slot)))
            if array.nbytes <= _SMALL and name not in self._subject.places:
                name = None
            if name is None:
                kept += array.nbytes
            if kept > _MOST_KEPT or array.dtype.hasobject:
                return None
            where = name or np.ascontiguousarray(array).tobytes()
            found[slot] = _StoredConstant(where, element(array.dtype).name, array.shape)
        return found

    def _array(self, constant: _StoredConstant) -> Array:
        where = constant.where
        if isinstance(where, str):
            return self._subject.constant(where)
        flat: Array = np.frombuffer(where, element(constant.element).dtype)
        return flat.reshape(constant.shape)


class _StoredConstant(NamedTuple):
    """A constant of a plan: the name of an initializer, or its bytes."""

    where: str | bytes
    element: str
    shape: tuple[int, ...]


def _checked(row: tuple[bytes, Image]) -> tuple[bytes, Image]:
    """Return the key and the image of a kernel; raises ValueError for an invalid image."""
    key, (code, entry) = row
    if not 0 <= entry < len(code):
        raise ValueError("the function is outside of its image")
    return key, row[1]


def _without_texts(plan: KernelPlan, keys: Mapping[Any, bytes]) -> KernelPlan:
    """Return a plan whose kernels are named by the keys of their machine code."""

    def stored(entry: Any) -> Any:
        choices = [(size, limit, StoredKernel(keys[spec]), args) for size, limit, spec, args in entry.choices]
        return replace(entry, choices=choices, bands=entry.bands and parts(entry.bands))

    def parts(bands: BandParts) -> BandParts:
        return replace(bands, parts=[part._replace(entry=stored(part.entry)) for part in bands.parts])

    entries = [stored(e) if isinstance(e, Entry) else e for e in plan.entries]
    setup = [stored(e) for e in plan.setup]
    return replace(plan, entries=entries, setup=setup, decisions=plan.decisions.as_text())


_ALLOWED = {
    "functools": ("partial",),
    "sabir.compilation.backends.cpu.jobs": (
        "rows_of_a_job", "rows_of_attention", "rows_of_trees", "tiles_of_a_job", "work_of_a_turn",
    ),
    "sabir.compilation.cache.stored": ("_StoredConstant",),
    "sabir.compilation.frontend.patterns": ("Guard",),
    "sabir.compilation.native._placing": ("Image",),
    "sabir.compilation.plan.bounds": ("Reach", "ComputedTensor"),
    "sabir.compilation.plan.decisions": ("Decisions",),
    "sabir.compilation.plan.entries": (
        "BandPart", "BandParts", "Buffer", "BufferNumber", "Computed", "Entry", "Offset", "KernelPlan",
        "StoredKernel", "EntryLoop", "Place",
    ),
    "sabir.ir._dims_algebra": ("DimCall", "Expr"),
}  # fmt: skip
"""The classes and functions that a stored plan may refer to, by module."""


class _Reader(pickle.Unpickler):  # ruff: ignore[suspicious-pickle-usage]  as above
    """Reads a plan; it imports nothing but the classes of plans."""

    def find_class(self, module: str, name: str, /) -> Any:
        if name not in _ALLOWED.get(module, ()):
            raise pickle.UnpicklingError(f"{module}.{name} is not a part of plans")
        return super().find_class(module, name)
