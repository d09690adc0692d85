"""Loops in native code: the plan of a loop body runs many times, with double-buffered states.

Even runs read the states from one set of arrays and write the other set, odd runs the reverse. So no states
are copied, and runs follow each other without Python. Scan outputs are copied into their stacks after each
run. A loop returns to Python after some milliseconds, to count limits and to allow cancellation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import CancelledError, check_time, spend_iteration
from sabir.compilation.native import Control
from sabir.compilation.native._repetition import MemoryCopy, Repeatedly, Repetition
from sabir.compilation.plan.entries import Mismatch
from sabir.compilation.plan.layout import RunSizes
from sabir.compilation.runtime.binding import Binding
from sabir.compilation.runtime.fast import team_for, work_of
from sabir.compilation.runtime.values import shape_and_dtype
from sabir.ir import Array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.compilation.plan.entries import Buffer
    from sabir.compilation.plan.layout import PartLayout
    from sabir.compilation.runtime.program import CompiledProgram
    from sabir.evaluation import Run

_SLICE = 1 << 24  # operations and bytes, including those of scan outputs, between returns to Python
_MOST_RUNS = 1 << 14  # between returns to Python
_SIDES = (0, 1)


class Repeated(NamedTuple):
    """The results of a loop: the condition and the final states, and the stacked scan outputs."""

    state: tuple[Array, ...]
    stacks: tuple[Array, ...]


def repeat(
    program: CompiledProgram, arrays: Sequence[Any], symbols: Mapping[str, int], run: Run, *, carried: int,
    limit: int | None, conditional: bool, cost: int,
) -> Repeated | None:  # fmt: skip
    """Run the plan of a body up to `limit` times; if `conditional`, while its first result is true.

    `arrays` are the iteration number, the condition and the states (`carried` arrays), and the captured
    values. `limit` None means without limit. Returns None if the plan cannot be repeated in native code.
    Raises LimitError, and Mismatch if kernels counted an error.
    """
    if not program.is_native or len(program.parts) != 1:
        return None
    if program.key_buffers:
        return None  # each run needs new random words
    sizes = RunSizes(symbols)
    layout = program.layout(0, sizes)
    outputs = [program.plan.outputs.get(slot) for slot in program.executable.results]
    plain = [b for b in outputs if b is not None and b.strides is None]
    if len(plain) < len(outputs) or not _carries_on(plain, arrays[1 : 1 + carried], sizes):
        return None
    loop = _Loop(program, layout, sizes, plain, arrays, carried, conditional=conditional)
    try:
        return loop.run(limit, run, cost)
    finally:
        loop.release()


def _carries_on(outputs: Sequence[Buffer], states: Sequence[Array], sizes: RunSizes) -> bool:
    """Return whether the results have the shapes and types of the states that they replace."""
    return all(shape_and_dtype(b, sizes) == (x.shape, x.dtype) for b, x in zip(outputs, states, strict=False))


class _Loop:
    """The memory of one loop: two sets of states, the scan outputs of a run, and a table for each set."""

    def __init__(
        self, program: CompiledProgram, layout: PartLayout, sizes: RunSizes, outputs: Sequence[Buffer],
        arrays: Sequence[Array], carried: int, *, conditional: bool,
    ) -> None:  # fmt: skip
        self._program, self._layout, self._control = program, layout, Control()
        self._team = team_for(program, sizes)
        self._number = np.array(arrays[0], np.int64)
        self._states = [
            [np.array(x, order="C", copy=True) for x in arrays[1 : 1 + carried]],
            [np.empty(x.shape, x.dtype) for x in arrays[1 : 1 + carried]],
        ]
        self._items = [np.empty(*shape_and_dtype(b, sizes)) for b in outputs[carried:]]
        work = work_of(program.plan, sizes) + layout.needs.work + sum(x.nbytes for x in self._items) + 1
        self._runs = max(1, min(_SLICE // work, _MOST_RUNS))
        binding = Binding(program)
        self._memory = binding.bind_arena(program.parts[0], layout, self._team.threads)
        binding.bind_known(sizes)
        captured = [np.require(x, None, ["C", "A"]) for x in arrays[1 + carried :]]
        self._bindings = [self._bound(binding, side, outputs, captured) for side in _SIDES]
        tables = [bound.table for bound in self._bindings]
        again = tuple(self._states[1 - side][0].ctypes.data if conditional else 0 for side in _SIDES)
        copies, self._copied = self._copies(outputs, tables)
        plan = Repeatedly(self._team, layout.rows, (tables[0], tables[1]), self._control)
        self._repetition = Repetition(plan, self._number.ctypes.data, (again[0], again[1]), copies)

    def _bound(
        self, common: Binding, side: int, outputs: Sequence[Buffer], captured: Sequence[Array]
    ) -> Binding:
        """Return the binding of the runs that read the states `side`, and write the others."""
        bound = common.copy()
        fed: list[Array] = [self._number, *self._states[side], *captured]
        bound.bind_inputs(dict(zip(self._program.executable.inputs, fed, strict=True)))
        placed = [*zip(outputs, [*self._states[1 - side], *self._items], strict=True)]
        for buffer, array in reversed(placed):  # of results with the same buffer, the first is bound
            bound.bind(buffer, array)
        return bound

    def _copies(self, outputs: Sequence[Buffer], tables: Sequence[Array]) -> tuple[list[MemoryCopy], int]:
        """Return the copies after each run: first of states that share a buffer, then of scan outputs.

        The second result is the number of copies of states.
        """
        carried = len(self._states[0])
        copies: list[MemoryCopy] = []
        for place, buffer in enumerate(outputs[:carried]):
            sources = int(tables[0][buffer.number]), int(tables[1][buffer.number])
            pair = self._states[1][place], self._states[0][place]
            targets = pair[0].ctypes.data, pair[1].ctypes.data
            if sources != targets:
                copies.append(MemoryCopy(sources, targets, pair[0].nbytes, 0))
        count = len(copies)
        for item, buffer in zip(self._items, outputs[carried:], strict=True):
            sources = int(tables[0][buffer.number]), int(tables[1][buffer.number])
            copies.append(MemoryCopy(sources, (0, 0), item.nbytes, item.nbytes))
        return copies, count

    def run(self, limit: int | None, run: Run, cost: int) -> Repeated:
        """Run the loop to its end; raises LimitError, and Mismatch if kernels counted an error."""
        budget, stacks, total = run.budget, [list[Array]() for _ in self._items], 0
        alive = budget.live_bytes
        while not self._repetition.has_stopped and (limit is None or total < limit):
            count = self._runs if limit is None else min(self._runs, limit - total)
            if count * self._layout.needs.charge > budget.work:
                raise Mismatch("the loop may need more than the limits allow")
            parts = [np.empty((count, *item.shape), item.dtype) for item in self._items]
            budget.allocate(sum(part.nbytes for part in parts))
            for place, part in enumerate(parts):
                self._repetition.aim(self._copied + place, part.ctypes.data)
            done = self._slice(count, run)
            spend_iteration(cost, done)
            budget.work -= done * self._layout.needs.charge
            total += done
            for stack, part in zip(stacks, parts, strict=True):
                stack.append(part[:done])
        budget.live_bytes = alive
        state = tuple(self._states[self._repetition.side])
        return Repeated(state, tuple(s[0] if len(s) == 1 else np.concatenate(s) for s in stacks))

    def _slice(self, count: int, run: Run) -> int:
        """Run the body up to `count` times, each run to its end; return the number of runs."""
        done = self._repetition.run(count)
        while done < count and not self._repetition.has_stopped:
            if self._repetition.has_failed:
                raise Mismatch("an index is out of range, or an image has an infinity or NaN")
            if self._control.cancelled:
                raise CancelledError("the run was cancelled")
            check_time(run.budget)
            done += self._repetition.run(count - done)
        return done

    def release(self) -> None:
        """Give the arena and scratch memory back to the program."""
        for memory in self._memory:
            self._program.arenas.give(memory)
