"""A compiled plan: its kernels as machine code, its constants, and the layouts of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import CancelledError, SpareBlocks
from sabir.compilation.cache.weights import packed_weights
from sabir.compilation.locks import ProcessLock
from sabir.compilation.native import Control, Library, execute
from sabir.compilation.plan.entries import (
    SCRATCH,
    Buffer,
    Entry,
    EvaluatedEntry,
    KernelPlan,
    Mismatch,
    StoredKernel,
)
from sabir.compilation.plan.layout import PartLayout, RunSizes, aligned, lay_out, plan_parts
from sabir.compilation.protocol import Portable
from sabir.compilation.runtime.running import PlanRun
from sabir.elements import element
from sabir.ir import Expr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir.compilation.cache.calls import StoredCall
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import EarlyKernels, Image, Source, Target, Team
    from sabir.compilation.plan.entries import Kernel, Spec
    from sabir.compilation.plan.executable import Executable
    from sabir.compilation.plan.layout import PlanPart
    from sabir.compilation.plan.relayout import Condition, MovingLayout
    from sabir.compilation.protocol import Bodies
    from sabir.compilation.runtime.repeating import Repeated
    from sabir.evaluation import BoundCall, Run
    from sabir.ir import Array


_MOST_LAYOUTS = 64  # of each part, on average


class CompiledProgram:
    """A compiled plan that can run; several threads may run it at the same time.

    It has `kernels` kernels, of which `compiled` were in no cache. `prepared` is the program of the plan; a
    plan from the disk has None.
    """

    def __init__(
        self, executable: Executable, team: Team, prepared: Prepared | None = None,
        bodies: Bodies | None = None, *, progress: Callable[[int, int], None] | None = None,
        images: Mapping[bytes, Image] | None = None, stored: Mapping[int, StoredCall] | None = None,
        early: EarlyKernels | None = None,
        sources: Callable[[Kernel], Source] | None = None,
    ) -> None:  # fmt: skip
        """Compile or load the kernels of a plan, and pack its constants.

        `bodies` returns the function that runs a subgraph, given the subgraph and its interpreted plan.
        `images` has the kernels of a plan from the disk, `stored` its evaluated calls by index, `early` the
        kernels that were started while the plan was built, and `sources` returns the source of a kernel of a
        new plan. `progress` is called with the numbers of finished kernels and of all.

        Raises what `Library.load` raises: LookupError if the kernels of a plan from the disk are no longer in
        the cache; also if there is no operator any more that it calls.
        """
        self.executable, self.prepared, self.team = executable, prepared, team
        self.plan = plan = executable.plan
        specs = specs_of(plan)
        self._library = Library.load(
            [s.key if isinstance(s, StoredKernel) else source_for(s, sources) for s in specs],
            self.target,
            images=images,
            progress=progress,
            early=early,
        )
        self.kernels, self.compiled = len(specs), self._library.compiled
        self._addresses: dict[object, int] = dict(zip(specs, self._library.addresses, strict=True))
        self.keys = dict(zip(specs, self._library.keys, strict=True))
        self.parts = plan_parts(plan, executable.symbols)
        self.has_control = plan.has_control
        self.input_buffers = {buffer.slot: buffer for buffer in plan.buffers if buffer.kind == "input"}
        self.key_buffers = [buffer for buffer in plan.buffers if buffer.kind == "keys"]  # one at most
        self._layouts: dict[tuple[int, tuple[tuple[str, int], ...]], PartLayout] = {}
        self._lock = ProcessLock()
        self.arenas = SpareBlocks(aligned)
        self.calls = self._bound_calls(prepared, bodies, stored or {})
        self.constants = self._constants()
        self._packed = packed_weights(plan.setup, executable.constants, self.keys, self._pack)
        self._read: list[Array] = []  # the constants that kernels read without packing
        self.table = self._new_table()
        if prepared is not None:
            self._release(prepared)

    @property
    def target(self) -> Target:
        """The processor that the kernels are compiled for."""
        return self.team.target

    def images(self) -> dict[bytes, Image]:
        """Return the machine code of the kernels by their keys."""
        return self._library.images()

    def _release(self, prepared: Prepared) -> None:
        """Free folded constants that nothing reads, because kernels read their operands instead."""
        plan, arrays = self.plan, prepared.constants
        read = {slot for e in plan.entries if isinstance(e, EvaluatedEntry) for slot in e.call.reads}
        read |= {b.slot for b in (*plan.buffers, *(e.buffers[0] for e in plan.setup))}
        read.update(self.executable.results)
        for slot in arrays.keys() - read - prepared.program.constants.keys():
            whole = arrays[slot]
            arrays[slot] = np.broadcast_to(np.zeros((), whole.dtype), whole.shape)  # keeps only the shape

    @property
    def source(self) -> Prepared:
        """The program of the plan; raises TypeError for a plan from the disk, which has none."""
        if self.prepared is None:
            raise TypeError("a plan from the disk has no program")
        return self.prepared

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the guards of the plan hold for the sizes of the feeds, by symbol."""
        return all(guard.holds(sizes) for guard in self.executable.guards)

    def _bound_calls(
        self, prepared: Prepared | None, bodies: Bodies | None, stored: Mapping[int, StoredCall]
    ) -> dict[int, BoundCall]:
        places = [e.call.place for e in self.plan.entries if isinstance(e, EvaluatedEntry)]
        if not places:
            return {}
        from sabir.evaluation import CallBinder  # ruff: ignore[import-outside-top-level]  kernels need no calls

        binder = CallBinder(strict=False, bodies=bodies)
        if prepared is None:
            return {place: binder.bind(stored[place].call()) for place in places}
        return {place: binder.bind(prepared.program.calls[place]) for place in places}

    def _constants(self) -> dict[int, Array]:
        """Return the constants that evaluated calls read, aligned: BLAS copies an unaligned operand."""
        read = {slot for e in self.plan.entries if isinstance(e, EvaluatedEntry) for slot in e.call.reads}
        arrays = self.executable.constants
        return {slot: np.require(arrays[slot], None, "A") for slot in sorted(read & arrays.keys())}

    def _new_table(self) -> Array:
        """Return the table of buffer addresses, set for constants; a run sets the others."""
        count = 1 + max([SCRATCH, *(b.number for b in self.plan.buffers), *(p.arena for p in self.parts)])
        table: Array = np.zeros(count, np.int64)
        for buffer in self.plan.buffers:
            if buffer.kind == "constant":  # kernels need no alignment
                array = np.ascontiguousarray(self.executable.constants[buffer.slot])
                self._read.append(array)
            elif buffer.kind == "packed":
                array = self._packed[buffer].array
            else:
                continue
            table[buffer.number] = array.ctypes.data
        return table

    def _pack(self, entries: Sequence[Entry], targets: Mapping[Buffer, Array]) -> None:
        """Run the entries that pack constants into `targets`."""
        plan = KernelPlan(
            list(entries), [], {}, [], single_work=self.plan.single_work, fine_work=self.plan.fine_work
        )
        (part,) = plan_parts(plan, frozenset())
        layout = lay_out(plan, part, RunSizes({}), self._addresses, {}, self.team.threads)
        sources = {
            e.buffers[0]: np.ascontiguousarray(self.executable.constants[e.buffers[0].slot]) for e in entries
        }
        table: Array = np.zeros(1 + max(b.number for e in entries for b in e.buffers), np.int64)
        for buffer, array in (sources | dict(targets)).items():
            table[buffer.number] = array.ctypes.data
        self.native(layout, (0, len(layout.rows)), table, Control(), lambda: None)

    def native(
        self,
        layout: PartLayout,
        rows: tuple[int, int],
        table: Array,
        control: Control,
        check: Callable[[], object],
    ) -> None:
        """Run the rows of a layout from `rows[0]` to before `rows[1]`, with the buffer addresses of `table`.

        `check` is called between slices of time. Raises CancelledError if `control` is cancelled, and what
        `check` raises.
        """
        done = execute(
            self.team, layout.rows.ctypes.data, rows[0], rows[1], table.ctypes.data, control, check
        )
        if done < rows[1]:
            raise CancelledError("the run was cancelled")

    @property
    def threads(self) -> int:
        """The number of threads that run the plan."""
        return self.team.threads

    @property
    def inputs(self) -> tuple[int, ...]:
        """The slots of the inputs of a run, in order."""
        return self.executable.inputs

    @property
    def is_native(self) -> bool:
        """Whether a run makes no call outside of native code."""
        return not self.calls

    def known(self, buffer: Buffer, sizes: RunSizes) -> Array:
        """Return the tensor of a buffer of kind `known`, whose elements sizes determine."""
        known = self.executable.known[buffer.slot]
        items = [sizes(i) if isinstance(i, Expr) else i for i in known]
        return np.array(items, element(buffer.element).dtype).reshape(tuple(map(sizes, buffer.shape)))

    # ------------------------------------------------------------ runs

    def run(
        self,
        inputs: Sequence[Array | None],
        symbols: Mapping[str, int],
        run: Run,
        control: Control | None = None,
    ) -> list[Any]:
        """Return the outputs of a run; `symbols` has the sizes of the inputs.

        Raises Mismatch if the plan does not fit the inputs, CancelledError if `control` is cancelled, and
        what evaluated calls raise.
        """
        return PlanRun(self, inputs, symbols, run, control or Control()).outputs()

    def direct(self, *_: Any) -> None:
        """Return None: `runtime.fast` has the fast runs of one plan."""

    def repeat(
        self, arrays: Sequence[Any], symbols: Mapping[str, int], run: Run, *, carried: int,
        limit: int | None, conditional: bool, cost: int,
    ) -> Repeated | None:  # fmt: skip
        """Return the results of a loop with this plan as its body; None if native code cannot repeat it."""
        from sabir.compilation.runtime.repeating import repeat  # ruff: ignore[import-outside-top-level]  loops only

        return repeat(
            self, arrays, symbols, run, carried=carried, limit=limit, conditional=conditional, cost=cost
        )

    def portable(self) -> Portable | None:
        """Return what another process needs to run the plan; None if it has calls that cannot be stored."""
        calls = {} if self.is_native else self._stored_calls()
        return None if calls is None else Portable(self.executable, self.keys, self.images(), calls)

    def _stored_calls(self) -> dict[int, StoredCall] | None:
        """Return the evaluated calls as stored; None if one cannot be, or reads what sizes decide."""
        # ruff: ignore[import-outside-top-level]  few plans have evaluated calls
        from sabir.compilation.cache.calls import stored_call

        found: dict[int, StoredCall] = {}
        filled = {*self.inputs, *self.executable.constants}
        for entry in self.plan.entries:
            if isinstance(entry, EvaluatedEntry):
                place = entry.call.place
                call = stored_call(self.source.program.calls[place])
                if call is None or not filled.issuperset(set(entry.call.reads) - entry.reads.keys()):
                    return None
                found[place] = call
                filled.update(call.outputs)
        return found

    def stages(self) -> Iterator[CompiledProgram]:
        """Yield the plan itself: it has one stage."""
        yield self

    def release(self) -> None:
        """Free the arenas that are kept for later runs."""
        self.arenas.clear()

    def layout(self, number: int, sizes: RunSizes, earlier: Mapping[Buffer, int] | None = None) -> PartLayout:
        """Return the layout of a part for the sizes of a run; `earlier` has the offsets of earlier parts."""
        key = number, tuple(sizes.symbols.items())
        found = self._layouts.get(key)
        if found is None:
            with self._lock:
                made = laid_out(
                    self.plan, self.parts, number, sizes, self._addresses, earlier or {}, self.team.threads
                )
                if len(self._layouts) >= _MOST_LAYOUTS * len(self.parts):
                    self._layouts.clear()
                found = self._layouts[key] = made
        return found

    def moving_layout(
        self, sizes: Mapping[str, int], room: Mapping[str, int], conditions: Sequence[Condition]
    ) -> MovingLayout:
        """Return a layout of a plan of one part that can follow sizes up to `room`; raises Mismatch."""
        # ruff: ignore[import-outside-top-level]  few sessions run for several sizes
        from sabir.compilation.plan.relayout import MovingLayout

        (part,) = self.parts
        try:
            return MovingLayout(self.plan, part, sizes, room, conditions, self._addresses, self.team.threads)
        except (KeyError, OverflowError) as error:
            raise Mismatch(f"the plan has no layout for these sizes: {error}") from error


def laid_out(
    plan: KernelPlan, parts: Sequence[PlanPart], number: int, sizes: RunSizes,
    addresses: Mapping[object, int], earlier: Mapping[Buffer, int], threads: int,
) -> PartLayout:  # fmt: skip
    """Return the layout of a part of a plan for the sizes of a run; raises Mismatch if there is none."""
    try:
        return lay_out(plan, parts[number], sizes, addresses, earlier, threads)
    except (KeyError, OverflowError) as error:  # a size that no call has decided, or past 64 bits
        raise Mismatch(f"the plan has no layout for these sizes: {error}") from error


def specs_of(plan: KernelPlan) -> list[Spec]:
    """Return the specifications of the kernels of a plan, each once, in order."""
    entries = [e for e in (*plan.setup, *plan.entries) if isinstance(e, Entry)]
    return list(dict.fromkeys(spec for e in entries for spec in e.specs()))


def source_for(spec: Spec, sources: Callable[[Kernel], Source] | None) -> Source:
    """Return the source of a kernel; raises TypeError for a kernel from the disk, or without `sources`."""
    if sources is None or isinstance(spec, StoredKernel):
        raise TypeError("a new plan comes with the sources of its kernels")
    return sources(spec)


__all__ = ["CompiledProgram", "Mismatch", "laid_out", "source_for", "specs_of"]
