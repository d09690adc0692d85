"""One run of a compiled plan: kernels and evaluated calls in turn, part by part."""

from __future__ import annotations

import os
import sys
from bisect import bisect_right, insort
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import CancelledError, check_time
from sabir.compilation.plan.entries import ERRORS, SCRATCH, Mismatch
from sabir.compilation.plan.layout import RunSizes, aligned, allocated
from sabir.compilation.runtime.contents import contains_arrays
from sabir.elements import element
from sabir.ir import Expr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.compilation.native import Control
    from sabir.compilation.plan.entries import Buffer
    from sabir.compilation.plan.layout import PartLayout
    from sabir.compilation.runtime.program import CompiledProgram
    from sabir.evaluation import Run
    from sabir.ir import Array


_MOST_FREE = 4  # blocks of memory that a program keeps for its next runs


class Arenas:
    """Memory that runs no longer need, for runs with the same needs: fresh memory is slow to touch first."""

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}

    def take(self, size: int) -> Array:
        """Return so many bytes that begin at a multiple of 64; raises Mismatch where there are none."""
        try:
            return self._free[size].pop()
        except (KeyError, IndexError):
            return aligned(size)

    def give(self, memory: Array) -> None:
        """Keep memory that nothing reads any more."""
        if sum(map(len, self._free.values())) >= _MOST_FREE:
            self._free = {}
        self._free.setdefault(memory.size, []).append(memory)

    def clear(self) -> None:
        """Let go of all memory."""
        self._free = {}


class PlanRun:
    """One run of a program."""

    def __init__(
        self, program: CompiledProgram, inputs: Sequence[Array | None], symbols: Mapping[str, int], run: Run,
        control: Control,
    ) -> None:  # fmt: skip
        self.program, self.state, self.control = program, run, control
        self.sizes = RunSizes(symbols)
        self.table = program.table.copy()
        self.errors: Array = np.zeros(1, np.int64)
        self.table[ERRORS] = self.errors.ctypes.data
        executable = program.executable
        self.slots: list[Any] = [None] * executable.slots
        for slot, array in (executable.constants | program.constants).items():
            self.slots[slot] = array
        for slot, array in zip(executable.inputs, inputs, strict=True):
            if array is not None:
                self.slots[slot] = array
        self.keep: list[Any] = []
        self.scratch: list[Array] = []
        self.results: dict[int, Array] = {}
        self.arenas: dict[int, Array] = {}
        self._bounds: list[tuple[int, int]] = []  # the addresses of the arenas, in their order
        self.offsets: Mapping[Buffer, int] = {}
        for buffer in program.plan.buffers:
            if buffer.kind == "input":
                array = self.slots[buffer.slot]
                if not isinstance(array, np.ndarray):
                    raise Mismatch("an input is no tensor")
                self._point(buffer, np.require(cast("Array", array), None, ["C", "A"]))
            elif buffer.kind == "keys":
                self._point(buffer, np.frombuffer(os.urandom(self.sizes(buffer.size)), np.uint8))

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
        results = [
            self.results[slot] if slot in self.results else self._outside(self.slots[slot])
            for slot in program.executable.results
        ]
        for memory in (*self.arenas.values(), *self.scratch):
            program.arenas.give(memory)
        return results

    def _outside(self, value: Any) -> Any:
        """Return a value with copies of all arrays in it that are views of the arenas."""
        if isinstance(value, np.ndarray):
            array = cast("Array", value)
            return array.copy() if self._is_inside(array) else array
        if not contains_arrays(value):
            return value
        if isinstance(value, list):
            return [self._outside(item) for item in cast("list[Any]", value)]
        return {key: self._outside(item) for key, item in cast("dict[Any, Any]", value).items()}

    def _is_inside(self, array: Array) -> bool:
        address = array.ctypes.data
        place = bisect_right(self._bounds, (address, sys.maxsize)) - 1
        return place >= 0 and address < self._bounds[place][1]

    def _rows(self, layout: PartLayout, rows: tuple[int, int]) -> None:
        """Run kernels, from the first of `rows` to before the second."""
        self.program.native(layout, rows, self.table, self.control, check_time)
        if self.errors[0]:
            raise Mismatch("an index is out of range, or an image has an infinity or NaN")

    def _memory(self, number: int, layout: PartLayout) -> None:
        """Allocate the arena of a part, scratch memory, the outputs, and what is known of sizes."""
        program, part = self.program, self.program.parts[number]
        self._spend(layout)
        arena = program.arenas.take(layout.arena_bytes)
        self.arenas[part.arena] = arena
        insort(self._bounds, (arena.ctypes.data, arena.ctypes.data + arena.size))
        self.table[part.arena] = arena.ctypes.data
        if layout.scratch_bytes:
            scratch = program.arenas.take(layout.scratch_bytes * program.team.threads)
            self.scratch.append(scratch)
            self.table[SCRATCH] = scratch.ctypes.data
        for buffer in part.filled:
            if buffer.kind == "output":
                self._output(buffer)
            else:
                self._known(buffer)

    def _spend(self, layout: PartLayout) -> None:
        """Count what a part needs, before anything is allocated.

        The interpreter runs what seems too much: it counts in another way, and its errors name the node.
        """
        budget = self.state.budget
        size = layout.arena_bytes + layout.output_bytes + layout.scratch_bytes * self.program.team.threads
        work = layout.needs.charge
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
        from sabir.evaluation import run_call  # ruff: ignore[import-outside-top-level]  kernels need no calls

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
        for slot, shape in step.decides.items():
            self._bind_all(shape, np.shape(slots[slot]))
        for slot in step.reads:
            slots[slot] = None

    def _known_slot(self, slot: int) -> None:
        kind: Any = self.program.source.types[slot]
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
        self._bind_all(buffer.shape, array.shape)
        if self._is_inside(array):
            array = array.copy()
        array = np.require(array, None, ["C", "A"])
        slots[slot] = array
        self._point(buffer, array)

    def _bind_all(self, inferred: Any, shape: tuple[int, ...]) -> None:
        """Compare the shape of the result of a call with the inferred one, or let it decide symbols."""
        if len(shape) != len(inferred):
            raise Mismatch("an evaluated call gave another rank than inferred")
        for size, dim in zip(shape, inferred, strict=True):
            self._bind(dim, size)

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


__all__ = ["PlanRun"]
