"""A compiled plan: its kernels as machine code, its constants, and the layouts of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from sabir.base import CancelledError, check_time
from sabir.compilation._instance import ALIGNMENT, PartLayout, Sizes, aligned, allocated, lay_out, parts_of
from sabir.compilation._locks import ProcessLock
from sabir.compilation._plan import ERRORS, SCRATCH, Buffer, Entry, Mismatch, Step
from sabir.compilation.kernels import (
    Attention,
    Cumulation,
    Nest,
    Packing,
    Product,
    Scattering,
    Selection,
    Sliding,
    attention_text,
    cumulation_text,
    nest_text,
    packing_text,
    product_text,
    scattering_text,
    selection_text,
    sliding_text,
)
from sabir.compilation.native import Control, Library, execute
from sabir.elements import element
from sabir.evaluation import CallBinder, run_call
from sabir.ir import Expr

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.compilation._plan import Plan, Spec
    from sabir.compilation._prepare import Prepared
    from sabir.compilation.native import Team
    from sabir.evaluation import BoundCall, BoundPlan, Run
    from sabir.ir import Array
    from sabir.scheduling import ScheduledSubgraph

    Bodies: TypeAlias = Callable[[ScheduledSubgraph, BoundPlan], Any]

_MOST_LAYOUTS = 64


def text_of(spec: Spec) -> str:
    """Return the LLVM module of a kernel."""
    match spec:
        case Nest():
            return nest_text(spec)
        case Product():
            return product_text(spec)
        case Attention():
            return attention_text(spec)
        case Packing():
            return packing_text(spec)
        case Cumulation():
            return cumulation_text(spec)
        case Scattering():
            return scattering_text(spec)
        case Selection():
            return selection_text(spec)
        case Sliding():
            return sliding_text(spec)


def specs_of(plan: Plan) -> list[Spec]:
    """Return the kernels of a plan, each once, in order."""
    entries = [e for e in (*plan.setup, *plan.entries) if isinstance(e, Entry)]
    return list(dict.fromkeys(spec for e in entries for _, _, spec, _ in e.choices))


class CompiledProgram:
    """A plan that runs; several threads may run it at once.

    `given` are the symbols whose sizes the shapes of the feeds decide. It has `kernels`, of which `compiled`
    were in no cache.
    """

    def __init__(
        self, prepared: Prepared, plan: Plan, team: Team, given: frozenset[str], bodies: Bodies,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:  # fmt: skip
        """Compile a plan; `bodies` returns for a subgraph and its interpreted plan what runs it."""
        self.plan, self.prepared, self.team = plan, prepared, team
        specs = specs_of(plan)
        self._library = Library.load([text_of(s) for s in specs], progress=progress)
        self.kernels, self.compiled = len(specs), self._library.compiled
        self._addresses: dict[object, int] = dict(zip(specs, self._library.addresses, strict=True))
        self.parts = parts_of(plan, given)
        self._layouts: dict[tuple[int, tuple[tuple[str, int], ...]], PartLayout] = {}
        self._lock = ProcessLock()
        self._arenas: list[list[Array]] = []
        self._keep: list[Array] = []
        self.calls = self._bound_calls(prepared, bodies)
        self.constants = self._constants()
        self.table = self._new_table()
        self._setup()

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the guards of the plan hold for the sizes of some feeds."""
        return all(guard.holds(sizes) for guard in self.prepared.guards)

    def _bound_calls(self, prepared: Prepared, bodies: Bodies) -> dict[int, BoundCall]:
        binder = CallBinder(strict=False, bodies=bodies)
        steps = [e for e in self.plan.entries if isinstance(e, Step)]
        return {s.call.place: binder.bind(prepared.program.calls[s.call.place]) for s in steps}

    def _constants(self) -> dict[int, Array]:
        """Return the constants that evaluated calls read, aligned: BLAS copies an unaligned operand."""
        read = {slot for e in self.plan.entries if isinstance(e, Step) for slot in e.call.reads}
        arrays = self.prepared.constants
        return {slot: np.require(arrays[slot], None, "A") for slot in sorted(read & arrays.keys())}

    def _new_table(self) -> Array:
        count = 1 + max([SCRATCH, *(b.number for b in self.plan.buffers), *(p.arena for p in self.parts)])
        table: Array = np.zeros(count, np.int64)
        for buffer in self.plan.buffers:
            if buffer.kind == "constant":
                array = np.ascontiguousarray(
                    self.prepared.constants[buffer.slot]
                )  # kernels need no alignment
            elif buffer.kind == "packed":
                array = aligned(int(buffer.size))  # pyright: ignore[reportArgumentType]  constants have sizes
            else:
                continue
            self._keep.append(array)
            table[buffer.number] = array.ctypes.data
        return table

    def _setup(self) -> None:
        """Run the entries that pack constants."""
        if not self.plan.setup:
            return
        plan = type(self.plan)(list(self.plan.setup), [], {}, [])
        (part,) = parts_of(plan, frozenset())
        layout = lay_out(plan, part, [], Sizes({}), self._addresses, {})
        self.native(layout, (0, len(layout.rows)), self.table, Control(), lambda: None)

    def native(
        self,
        layout: PartLayout,
        rows: tuple[int, int],
        table: Array,
        control: Control,
        check: Callable[[], object],
    ) -> None:
        done = execute(
            self.team, layout.rows.ctypes.data, rows[0], rows[1], table.ctypes.data, control, check
        )
        if done < rows[1]:
            raise CancelledError("the run was cancelled")

    @property
    def is_native(self) -> bool:
        """Whether a run makes no call outside of native code."""
        return not self.calls

    def known(self, buffer: Buffer, sizes: Sizes) -> Array:
        """Return a tensor whose contents follow from sizes."""
        kind: Any = self.prepared.types[buffer.slot]
        items = [sizes(i) if isinstance(i, Expr) else i for i in kind.known]
        return np.array(items, element(buffer.element).dtype).reshape(tuple(map(sizes, buffer.shape)))

    # ------------------------------------------------------------ runs

    def run(
        self,
        inputs: Sequence[Array | None],
        symbols: Mapping[str, int],
        run: Run,
        control: Control | None = None,
    ) -> list[Any]:
        """Return the outputs; raises Mismatch where the plan does not fit, and what evaluated calls raise.

        CancelledError is raised when `control` is cancelled.
        """
        return PlanRun(self, inputs, symbols, run, control or Control()).outputs()

    def layout(self, number: int, sizes: Sizes, earlier: Mapping[Buffer, int] | None = None) -> PartLayout:
        """Return a part for the sizes of a run; `earlier` has the offsets of the parts before."""
        key = number, tuple(sizes.symbols.items())
        found = self._layouts.get(key)
        if found is None:
            with self._lock:
                made = self._laid_out(number, sizes, earlier or {})
                if len(self._layouts) >= _MOST_LAYOUTS:
                    self._layouts.clear()
                found = self._layouts[key] = made
        return found

    def _laid_out(self, number: int, sizes: Sizes, earlier: Mapping[Buffer, int]) -> PartLayout:
        try:
            return lay_out(self.plan, self.parts[number], self.parts, sizes, self._addresses, earlier)
        except (KeyError, OverflowError) as error:  # a size that no call has decided, or past 64 bits
            raise Mismatch(f"the plan has no layout for these sizes: {error}") from error


class PlanRun:
    """One run of a program."""

    def __init__(
        self, program: CompiledProgram, inputs: Sequence[Array | None], symbols: Mapping[str, int], run: Run,
        control: Control,
    ) -> None:  # fmt: skip
        self.program, self.state, self.control = program, run, control
        self.sizes = Sizes(symbols)
        self.table = program.table.copy()
        self.errors: Array = np.zeros(1, np.int64)
        self.table[ERRORS] = self.errors.ctypes.data
        prepared = program.prepared
        self.slots: list[Any] = [None] * prepared.program.size
        for slot, array in (prepared.constants | program.constants).items():
            self.slots[slot] = array
        for slot, array in zip(prepared.inputs, inputs, strict=True):
            if array is not None:
                self.slots[slot] = array
        self.keep: list[Any] = []
        self.results: dict[int, Array] = {}
        self.arenas: dict[int, Array] = {}
        self.worked = 0
        self.offsets: Mapping[Buffer, int] = {}
        for buffer in program.plan.buffers:
            if buffer.kind == "input":
                array = self.slots[buffer.slot]
                if not isinstance(array, np.ndarray):
                    raise Mismatch("an input is no tensor")
                self._point(buffer, np.require(cast("Array", array), None, ["C", "A"]))

    def _point(self, buffer: Buffer, array: Array) -> None:
        self.keep.append(array)
        self.table[buffer.number] = array.ctypes.data

    def outputs(self) -> list[Any]:
        """Run all parts; the caller counts the outputs, so what was alive meanwhile counts no more."""
        alive = self.state.budget.live_bytes
        try:
            return self._outputs()
        finally:
            self.state.budget.live_bytes = alive

    def _outputs(self) -> list[Any]:
        program = self.program
        for number in range(len(program.parts)):
            layout = program.layout(number, self.sizes, self.offsets)
            self.offsets = layout.offsets
            self._memory(number, layout)
            for item in layout.runs:
                check_time(self.state.budget)
                if isinstance(item, tuple):
                    self._rows(layout, item)
                else:
                    if self.control.cancelled:
                        raise CancelledError("the run was cancelled")
                    self._step(program.plan.entries[item])
        prepared = program.prepared
        return [
            self.results[slot] if slot in self.results else self.slots[slot] for slot in prepared.plan.results
        ]

    def _rows(self, layout: PartLayout, rows: tuple[int, int]) -> None:
        """Run kernels, from the first of `rows` to before the second."""
        self.program.native(layout, rows, self.table, self.control, check_time)
        if self.errors[0]:
            raise Mismatch("an index is out of range")

    def _memory(self, number: int, layout: PartLayout) -> None:
        """Allocate the arena of a part, scratch memory, the outputs, and what is known of sizes."""
        program, part = self.program, self.program.parts[number]
        self._spend(layout)
        arena = aligned(layout.arena_bytes)
        self.arenas[part.arena] = arena
        self.table[part.arena] = arena.ctypes.data
        if layout.scratch_bytes:
            scratch = aligned(layout.scratch_bytes * program.team.threads)
            self.keep.append(scratch)
            self.table[SCRATCH] = scratch.ctypes.data
        for buffer in program.plan.buffers:
            if not part.fills(buffer):
                continue
            if buffer.kind == "output":
                self._output(buffer)
            elif buffer.kind == "known":
                self._known(buffer)

    def _spend(self, layout: PartLayout) -> None:
        """Count what a part needs, before anything is allocated.

        The interpreter runs what seems too much: it counts in another way, and its errors name the node.
        """
        budget = self.state.budget
        size = layout.arena_bytes + layout.output_bytes + layout.scratch_bytes * self.program.team.threads
        work, self.worked = layout.needs.work - self.worked, layout.needs.work
        if (
            layout.needs.elements > budget.elements
            or work > budget.work
            or budget.live_bytes + size > budget.memory
        ):
            raise Mismatch("the run may need more than the limits allow")
        budget.live_bytes += size
        budget.work -= work

    def _output(self, buffer: Buffer) -> None:
        dtype = element(buffer.element).dtype
        shape = tuple(map(self.sizes, buffer.shape))
        array = allocated(shape, dtype)
        if buffer.strides is not None:
            flat = allocated((array.size,), dtype)
            strides = [self.sizes(s) * dtype.itemsize for s in buffer.strides]
            array = np.ndarray(shape, dtype, flat, 0, strides)
        self.results[buffer.slot] = array
        self.table[buffer.number] = array.ctypes.data

    def _known(self, buffer: Buffer) -> None:
        array = self.program.known(buffer, self.sizes)
        self.slots[buffer.slot] = array
        self._point(buffer, array)

    # ------------------------------------------------------------ evaluated calls

    def _step(self, step: Any) -> None:
        program, slots = self.program, self.slots
        for slot, read in step.reads.items():
            slots[slot] = self._view(*read)
        for slot in step.call.reads:
            if slots[slot] is None:
                self._known_slot(slot)
        call = program.calls[step.call.place]
        sizes = [0] * len(slots)
        run_call(call, slots, sizes, self.state)
        for slot, buffer in step.writes.items():
            self._result(slots, slot, buffer)
        for slot in step.reads:
            slots[slot] = None

    def _known_slot(self, slot: int) -> None:
        kind: Any = self.program.prepared.types[slot]
        known = getattr(kind, "known", None)
        if known is None or None in known:
            return
        items = [self.sizes(i) if isinstance(i, Expr) else i for i in known]
        shape = tuple(map(self.sizes, kind.shape))
        self.slots[slot] = np.array(items, kind.element.dtype).reshape(shape)

    def _view(self, buffer: Buffer, offset: Any, strides: Any, shape: Any) -> Array:
        """Return a tensor in memory as an array."""
        dtype = element(buffer.element).dtype
        sizes = tuple(map(self.sizes, shape))
        steps = tuple(self.sizes(s) * dtype.itemsize for s in strides)
        start = self.sizes(offset) * dtype.itemsize
        if buffer.kind == "arena":
            owner = next(p for p in self.program.parts if p.first <= buffer.first < p.last)
            memory = self.arenas[owner.arena]
            start += self.offsets[buffer]
        else:
            source = self.results[buffer.slot] if buffer.kind == "output" else self.slots[buffer.slot]
            memory = np.require(source, None, ["C", "A"]).reshape(-1).view(np.uint8)
        found: Array = (
            np.empty(sizes, dtype) if 0 in sizes else np.ndarray(sizes, dtype, memory, start, steps)
        )
        found.flags.writeable = False
        return found

    def _result(self, slots: list[Any], slot: int, buffer: Buffer) -> None:
        found = slots[slot]
        if not isinstance(found, np.ndarray):
            raise Mismatch("an evaluated call gave no tensor")
        array = cast("Array", found)
        if array.dtype != element(buffer.element).dtype:
            raise Mismatch("an evaluated call gave another type than inferred")
        if array.ndim != len(buffer.shape):
            raise Mismatch("an evaluated call gave another rank than inferred")
        for size, dim in zip(array.shape, buffer.shape, strict=True):
            self._bind(dim, size)
        if any(np.may_share_memory(array, arena) for arena in self.arenas.values()):
            array = array.copy()
        array = np.require(array, None, ["C", "A"])
        slots[slot] = array
        self._point(buffer, array)

    def _bind(self, dim: Any, size: int) -> None:
        """Compare a size with the inferred one, or let it decide a symbol."""
        if isinstance(dim, Expr):
            unknown = dim.symbols - self.sizes.symbols.keys()
            if len(unknown) == 1 and str(dim) in unknown:
                self.sizes.symbols[str(dim)] = size
                return
            if unknown:
                raise Mismatch("an evaluated call decides a size that is computed from others")
        if self.sizes(dim) != size:
            raise Mismatch(f"an evaluated call gave a size {size}, and {dim} was inferred")


__all__ = ["ALIGNMENT", "CompiledProgram", "Mismatch", "PlanRun", "specs_of", "text_of"]
