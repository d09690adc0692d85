"""Plans on disk: a later process runs a stored plan without planning.

The key of a plan is a digest of all that it depends on: the structure of the model with its small constants,
the identity of the files of large constants, the shape pattern, the processor, and the modules of Sabir. The
plans of the stages of a plan are entries of their own, whose keys follow from its key. A plan is not stored
if it has evaluated calls with subgraphs.
"""

from __future__ import annotations

import functools
import hashlib
import io
import pickle  # ruff: ignore[suspicious-pickle-import]  `_Reader` imports plans' classes only
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ACCIDENTS, SabirError, without_collector
from sabir.compilation.cache.modules import modules
from sabir.compilation.disk import cache
from sabir.compilation.plan.entries import Entry, EvaluatedEntry, StoredKernel
from sabir.compilation.plan.executable import Executable
from sabir.compilation.plan.stage_facts import StageFacts
from sabir.compilation.protocol import PortableStages
from sabir.elements import element

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.compilation.cache.calls import StoredCall
    from sabir.compilation.frontend.patterns import ShapePattern
    from sabir.compilation.frontend.subject import Subject
    from sabir.compilation.native import Image
    from sabir.compilation.plan.entries import BandParts, KernelPlan
    from sabir.compilation.protocol import Backend, Runnable
    from sabir.compilation.settings import Settings
    from sabir.ir import Array, Constant

KIND = "plans"
_FORMAT = "9"  # increased when the format of stored plans changes
_SMALL = 1 << 16  # bytes of a constant that is stored in a plan, unless a file has it in the same form
_MOST_KEPT = 1 << 24  # bytes of computed constants that are stored with a plan


class StoredPlan(NamedTuple):
    """A plan that was read, the machine code of its kernels by key, and its evaluated calls by index."""

    executable: Executable
    images: dict[bytes, Image]
    calls: dict[int, StoredCall]


class StoredStages(NamedTuple):
    """A plan in stages that was read: the constants between the stages by slot, and the calls there."""

    facts: StageFacts
    constants: dict[int, Array]
    calls: tuple[StoredCall, ...]


class PlanPlace(NamedTuple):
    """The place of a plan among the stored ones."""

    plans: StoredPlans
    key: bytes

    def part(self, name: str, pattern: ShapePattern | None = None) -> PlanPlace:
        """Return the place of a stage of the plan, for a pattern of its operands."""
        data = b"%s %s %s" % (self.key, name.encode(), repr(pattern).encode(errors="surrogatepass"))
        return PlanPlace(self.plans, hashlib.sha256(data).digest())

    def read(self) -> StoredPlan | StoredStages | None:
        """Return the plan; None if there is none."""
        return self.plans.read(self.key)

    def write(self, program: Runnable, tensors: Mapping[int, Constant]) -> bool:
        """Store a plan if it can be, and return whether it is; `tensors` are its initializers by slot."""
        return self.plans.write(self.key, program, tensors)


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

    def place(self, pattern: ShapePattern) -> PlanPlace | None:
        """Return the place of the plan for a pattern; None if plans of the model are not stored."""
        if cache().folder is None or self._digest is None:
            return None
        key = hashlib.sha256(f"{self._digest} {pattern!r}".encode(errors="surrogatepass")).digest()
        return PlanPlace(self, key)

    def read(self, key: bytes) -> StoredPlan | StoredStages | None:
        """Return the plan with a key; None if there is none."""
        data = cache().get(KIND, key, verify=True)
        if data is None:
            return None
        try:
            return self._decoded(data)
        except (SabirError, *ACCIDENTS, pickle.UnpicklingError, EOFError, ImportError):
            return None  # of another version: the new plan replaces it

    def _decoded(self, data: memoryview) -> StoredPlan | StoredStages:
        with without_collector():
            found, constants, rest = _Reader(io.BytesIO(data)).load()
        arrays = {slot: self._array(constant) for slot, constant in constants.items()}
        if isinstance(found, StageFacts):
            return StoredStages(found, arrays, rest)
        fields, images, calls = rest
        executable = Executable(found, constants=arrays, **fields)
        return StoredPlan(executable, dict(map(_checked, images.items())), calls)

    def write(self, key: bytes, program: Runnable, tensors: Mapping[int, Constant]) -> bool:
        """Store a plan, unless it cannot be or has too large constants; return whether it is stored."""
        found = program.portable()
        if found is None:
            return False
        arrays = found.constants if isinstance(found, PortableStages) else _constants_read(found.executable)
        constants = self._constants(arrays, tensors)
        if constants is None:
            return False
        if isinstance(found, PortableStages):
            data: Any = found.facts, constants, found.calls
        else:
            fields = found.executable._asdict()
            del fields["plan"], fields["constants"]
            plan = _without_texts(found.executable.plan, found.keys)
            data = plan, constants, (fields, found.images, found.calls)
        return cache().put(KIND, key, pickle.dumps(data, protocol=5))

    def _constants(
        self, arrays: Mapping[int, Array], tensors: Mapping[int, Constant]
    ) -> dict[int, _StoredConstant] | None:
        """Return the constants that runs read; None if they are too large to be stored."""
        names = self._subject.names_of_initializers()
        found: dict[int, _StoredConstant] = {}
        kept = 0
        for slot, array in sorted(arrays.items()):
            name = names.get(id(tensors.get(slot)))
            if array.nbytes <= _SMALL and name not in self._subject.places:
                name = None
            if name is None:
                kept += array.nbytes
            if kept > _MOST_KEPT:
                return None
            where = name or (tuple(array.ravel().tolist()) if array.dtype.hasobject else array.tobytes())
            found[slot] = _StoredConstant(where, element(array.dtype).name, array.shape)
        return found

    def _array(self, constant: _StoredConstant) -> Array:
        where = constant.where
        if isinstance(where, str):
            return self._subject.constant(where)
        dtype = element(constant.element).dtype
        flat: Array = np.array(where, dtype) if isinstance(where, tuple) else np.frombuffer(where, dtype)
        return flat.reshape(constant.shape)


class _StoredConstant(NamedTuple):
    """A constant of a plan: the name of an initializer, or its bytes, or its texts."""

    where: str | bytes | tuple[str, ...]
    element: str
    shape: tuple[int, ...]


def _constants_read(executable: Executable) -> dict[int, Array]:
    """Return the constants that runs of a plan read."""
    plan, arrays = executable.plan, executable.constants
    read = {b.slot for b in plan.buffers if b.kind == "constant"}
    read |= {entry.buffers[0].slot for entry in plan.setup}
    evaluated = {slot for e in plan.entries if isinstance(e, EvaluatedEntry) for slot in e.call.reads}
    return {slot: arrays[slot] for slot in read | (arrays.keys() & {*executable.results, *evaluated})}


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
        "rows_of_a_job", "rows_of_attention", "rows_of_trees", "tiles_of_a_job", "work_of_an_iteration",
    ),
    "sabir.compilation.cache.calls": ("StoredCall", "StoredTensor"),
    "sabir.compilation.cache.stored": ("_StoredConstant",),
    "sabir.compilation.frontend.patterns": ("Guard",),
    "sabir.compilation.frontend.unlowered": ("UnloweredCall",),
    "sabir.compilation.native._placing": ("Image",),
    "sabir.compilation.plan.bounds": ("Reach", "ComputedTensor"),
    "sabir.compilation.plan.decisions": ("Decisions",),
    "sabir.compilation.plan.entries": (
        "BandPart", "BandParts", "Buffer", "BufferNumber", "Computed", "Entry", "EvaluatedEntry", "Offset",
        "KernelPlan", "StoredKernel", "EntryLoop", "Place",
    ),
    "sabir.compilation.plan.stage_facts": ("InputKind", "StageFacts"),
    "sabir.ir._dims_algebra": ("DimCall", "Expr"),
}  # fmt: skip
"""The classes and functions that a stored plan may refer to, by module."""


class _Reader(pickle.Unpickler):  # ruff: ignore[suspicious-pickle-usage]  as above
    """Reads a plan; it imports nothing but the classes of plans."""

    def find_class(self, module: str, name: str, /) -> Any:
        if name not in _ALLOWED.get(module, ()):
            raise pickle.UnpicklingError(f"{module}.{name} is not a part of plans")
        return super().find_class(module, name)
