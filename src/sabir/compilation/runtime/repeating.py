"""Loops of native code: the plan of a body that runs many times, over states that lie in two places in turn.

A run reads the states from one place and writes them to the other, so nothing is copied and Python has
nothing to do between runs. What the loop stacks is copied to the place of its run. A loop returns to Python
after some milliseconds, where limits are counted and a run can be cancelled.
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

_SLICE = 1 << 24  # operations and bytes, and bytes of what is stacked, between returns to Python
_MOST_RUNS = 1 << 14
_TURNS = (0, 1)


class Repeated(NamedTuple):
    """What a loop leaves: the condition, the states, and what it stacked."""

    state: tuple[Array, ...]
    stacks: tuple[Array, ...]


def repeat(
    program: CompiledProgram, arrays: Sequence[Any], symbols: Mapping[str, int], run: Run, *, carried: int,
    limit: int | None, conditional: bool, cost: int,
) -> Repeated | None:  # fmt: skip
    """Run the plan of a body up to `limit` times, `conditional` while its first result is true.

    The first of the `arrays` is the number of the run; the condition and the states, `carried` arrays,
    follow, and then what the body captures. None is returned where the plan cannot repeat so. Raises
    LimitError, and Mismatch where kernels counted an error.
    """
    if not program.is_native or len(program.parts) != 1:
        return None
    if program.key_buffers:
        return None  # each run draws other numbers
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
    """Return whether the results have the types of the states that they follow."""
    return all(shape_and_dtype(b, sizes) == (x.shape, x.dtype) for b, x in zip(outputs, states, strict=False))


class _Loop:
    """The memory of one loop: states in two places, an item of each stack, tables of both."""

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
        self._bindings = [self._bound(binding, turn, outputs, captured) for turn in _TURNS]
        tables = [bound.table for bound in self._bindings]
        again = tuple(self._states[1 - turn][0].ctypes.data if conditional else 0 for turn in _TURNS)
        copies, self._copied = self._copies(outputs, tables)
        plan = Repeatedly(self._team, layout.rows, (tables[0], tables[1]), self._control)
        self._repetition = Repetition(plan, self._number.ctypes.data, (again[0], again[1]), copies)

    def _bound(
        self, common: Binding, turn: int, outputs: Sequence[Buffer], captured: Sequence[Array]
    ) -> Binding:
        """Return the binding of runs that read the states from place `turn`."""
        bound = common.copy()
        fed: list[Array] = [self._number, *self._states[turn], *captured]
        bound.bind_inputs(dict(zip(self._program.executable.inputs, fed, strict=True)))
        placed = [*zip(outputs, [*self._states[1 - turn], *self._items], strict=True)]
        for buffer, array in reversed(placed):  # the first of equal ones counts
            bound.bind(buffer, array)
        return bound

    def _copies(self, outputs: Sequence[Buffer], tables: Sequence[Array]) -> tuple[list[MemoryCopy], int]:
        """Return the copies after each run: of states that are another's too, then to the stacks.

        The second result is how many the former are.
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
        """Make all runs; raises Mismatch where one counted an error, and LimitError."""
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
        state = tuple(self._states[self._repetition.turn])
        return Repeated(state, tuple(s[0] if len(s) == 1 else np.concatenate(s) for s in stacks))

    def _slice(self, count: int, run: Run) -> int:
        """Make some runs, each to its end; return how many."""
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
        """Give the memory of kernels back."""
        for memory in self._memory:
            self._program.arenas.give(memory)
