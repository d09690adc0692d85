"""One run of a compiled plan on the slow path: kernels and evaluated calls in order, part by part."""

from __future__ import annotations

import sys
from bisect import bisect_right, insort
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import CancelledError, check_time
from sabir.compilation.plan.entries import Mismatch
from sabir.compilation.plan.layout import RunSizes, allocated
from sabir.compilation.runtime.binding import Binding
from sabir.compilation.runtime.values import View, shape_and_dtype, with_copies
from sabir.elements import element
from sabir.ir import Expr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.base import Budget
    from sabir.compilation.native import Control
    from sabir.compilation.plan.entries import Buffer
    from sabir.compilation.plan.layout import PartLayout
    from sabir.compilation.runtime.program import CompiledProgram
    from sabir.evaluation import Run
    from sabir.ir import Array


def require_budget(budget: Budget, layout: PartLayout, threads: int) -> int:
    """Return the bytes that a part needs; raises Mismatch if it needs more than the budget has."""
    size = layout.arena_bytes + layout.output_bytes + layout.scratch_bytes * threads
    if (
        layout.needs.elements > budget.elements
        or layout.needs.charge > budget.work
        or budget.live_bytes + size > budget.memory
    ):
        raise Mismatch("the run may need more than the limits allow")
    return size


class PlanRun:
    """One run of a program on the slow path."""

    def __init__(
        self, program: CompiledProgram, inputs: Sequence[Array | None], symbols: Mapping[str, int], run: Run,
        control: Control,
    ) -> None:  # fmt: skip
        self.program, self.state, self.control = program, run, control
        self.sizes = RunSizes(symbols)
        self.binding = Binding(program)
        executable = program.executable
        self.slots: list[Any] = [None] * executable.slots
        for slot, array in (executable.constants | program.constants).items():
            self.slots[slot] = array
        for slot, array in zip(executable.inputs, inputs, strict=True):
            if array is not None:
                self.slots[slot] = array
        self.memory: list[Array] = []  # arenas and scratch memory, for the next run
        self.results: dict[int, Array] = {}
        self.arenas: dict[int, Array] = {}
        self._bounds: list[tuple[int, int]] = []  # (start, end) addresses of the arenas, sorted
        self.offsets: Mapping[Buffer, int] = {}
        self.binding.bind_inputs(self.slots)
        self.binding.bind_keys(self.sizes)

    def outputs(self) -> list[Any]:
        """Run all parts, and return the outputs; reset the live bytes: the caller counts the outputs."""
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
        results = [
            self.results[slot] if slot in self.results else with_copies(self.slots[slot], self._is_inside)
            for slot in program.executable.results
        ]
        for memory in self.memory:
            program.arenas.give(memory)
        return results

    def _is_inside(self, array: Array) -> bool:
        """Return whether an array is in the memory of an arena."""
        address = array.ctypes.data
        place = bisect_right(self._bounds, (address, sys.maxsize)) - 1
        return place >= 0 and address < self._bounds[place][1]

    def _rows(self, layout: PartLayout, rows: tuple[int, int]) -> None:
        """Run kernels, from row `rows[0]` to before `rows[1]`."""
        controls = self.program.has_control
        if controls:
            self.binding.limit(self.state.budget)
        self.program.native(layout, rows, self.binding.table, self.control, check_time)
        if controls:
            self.binding.spend(self.state.budget)
        if self.binding.errors[0]:
            raise Mismatch("an index is out of range, or an image has an infinity or NaN")

    def _memory(self, number: int, layout: PartLayout) -> None:
        """Bind new memory of a part: arena, scratch memory, outputs, and tensors that sizes determine."""
        program, part = self.program, self.program.parts[number]
        self._spend(layout)
        arena, *scratch = self.binding.bind_arena(part, layout, program.team.threads)
        self.arenas[part.arena] = arena
        self.memory += [arena, *scratch]
        insort(self._bounds, (arena.ctypes.data, arena.ctypes.data + arena.size))
        for buffer in part.filled:
            if buffer.kind == "output":
                self._output(buffer)
        for slot, array in self.binding.bind_known(self.sizes, part.filled).items():
            self.slots[slot] = array

    def _spend(self, layout: PartLayout) -> None:
        """Charge the memory and work of a part to the budget before the memory is allocated.

        Raises Mismatch if the budget does not suffice. Then the interpreter runs the model: it counts in
        another way, and its errors name the node.
        """
        budget = self.state.budget
        budget.live_bytes += require_budget(budget, layout, self.program.team.threads)
        budget.work -= layout.needs.charge

    def _output(self, buffer: Buffer) -> None:
        shape, dtype = shape_and_dtype(buffer, self.sizes)
        array = allocated(shape, dtype)
        if buffer.strides is not None:
            flat = allocated((array.size,), dtype)
            strides = [self.sizes(s) * dtype.itemsize for s in buffer.strides]
            array = np.ndarray(shape, dtype, flat, 0, strides)
        self.results[buffer.slot] = array
        self.binding.bind(buffer, array)

    # ------------------------------------------------------------ evaluated calls

    def _step(self, step: Any) -> None:
        from sabir.evaluation import run_call  # ruff: ignore[import-outside-top-level]  kernels need no calls

        program, slots = self.program, self.slots
        for slot, read in step.reads.items():
            slots[slot] = self._view(read)
        for slot in step.call.reads:
            if slots[slot] is None:
                self._known_slot(slot)
        call = program.calls[step.call.place]
        sizes = [0] * len(slots)
        run_call(call, slots, sizes, self.state)
        for slot, buffer in step.writes.items():
            self._result(slots, slot, buffer)
        for slot, shape in step.decides.items():
            self._bind_all(shape, np.shape(slots[slot]))
        for slot in step.reads:
            slots[slot] = None

    def _known_slot(self, slot: int) -> None:
        prepared = self.program.prepared
        if prepared is None:
            return  # calls of a plan from the disk read no such slot: this one is an absent optional
        kind: Any = prepared.types[slot]
        known = getattr(kind, "known", None)
        if known is None or None in known:
            return
        items = [self.sizes(i) if isinstance(i, Expr) else i for i in known]
        shape = tuple(map(self.sizes, kind.shape))
        self.slots[slot] = np.array(items, kind.element.dtype).reshape(shape)

    def _view(self, read: tuple[Buffer, Any, Any, Any]) -> Array:
        """Return a tensor in memory as an array."""
        buffer = read[0]
        if buffer.kind == "arena":
            owner = next(p for p in self.program.parts if p.first <= buffer.first < p.last)
            memory = self.arenas[owner.arena]
        else:
            source = self.results[buffer.slot] if buffer.kind == "output" else self.slots[buffer.slot]
            memory = np.require(source, None, ["C", "A"]).reshape(-1).view(np.uint8)
        return View.of(read, self.offsets, self.sizes).array(memory)

    def _result(self, slots: list[Any], slot: int, buffer: Buffer) -> None:
        found = slots[slot]
        if not isinstance(found, np.ndarray):
            raise Mismatch("an evaluated call gave no tensor")
        array = cast("Array", found)
        if array.dtype != element(buffer.element).dtype:
            raise Mismatch("an evaluated call gave another type than inferred")
        self._bind_all(buffer.shape, array.shape)
        if self._is_inside(array):
            array = array.copy()
        array = np.require(array, None, ["C", "A"])
        slots[slot] = array
        self.binding.bind(buffer, array)

    def _bind_all(self, inferred: Any, shape: tuple[int, ...]) -> None:
        """Compare the shape of a call's result with the inferred shape, and set symbols that it decides."""
        if len(shape) != len(inferred):
            raise Mismatch("an evaluated call gave another rank than inferred")
        for size, dim in zip(shape, inferred, strict=True):
            self._bind(dim, size)

    def _bind(self, dim: Any, size: int) -> None:
        """Compare a size with the inferred one, or set the symbol that it decides; raises Mismatch."""
        if isinstance(dim, Expr):
            unknown = dim.symbols - self.sizes.symbols.keys()
            if len(unknown) == 1 and str(dim) in unknown:
                self.sizes.symbols[str(dim)] = size
                return
            if unknown:
                raise Mismatch("an evaluated call decides a size that is computed from others")
        if self.sizes(dim) != size:
            raise Mismatch(f"an evaluated call gave a size {size}, and {dim} was inferred")


__all__ = ["PlanRun"]
