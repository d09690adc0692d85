"""The binding of a run: a table with the address of each buffer, and the arrays that it refers to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import LimitError, spend_iteration
from sabir.compilation.plan.entries import (
    ARENA,
    ERRORS,
    EXCEEDED,
    ITERATIONS,
    METER,
    MOST_ITERATIONS,
    MOST_WORK,
    SCRATCH,
    WORK,
    Mismatch,
)
from sabir.compilation.plan.layout import allocated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.base import Budget
    from sabir.compilation.plan.entries import Buffer
    from sabir.compilation.plan.layout import PartLayout, PlanPart, RunSizes
    from sabir.compilation.runtime.program import CompiledProgram
    from sabir.ir import Array

_UNLIMITED = 1 << 62
UNUSED = (
    ARENA  # the table entry for a feed that no kernel reads; only bands use this number, in their own tables
)


class Binding:
    """The table of buffer addresses of a run; `errors` is its meter, whose first number counts errors.

    The binding keeps the bound arrays alive.
    """

    __slots__ = ("_kept", "_keys", "_program", "errors", "table")

    def __init__(self, program: CompiledProgram) -> None:
        """Bind the constants of a program, and a counter of errors."""
        self._program = program
        self._kept: list[Array] = []
        self._keys: Array | None = None
        self.table: Array = program.table.copy()
        self.errors: Array = np.zeros(METER, np.int64)
        self.errors[[MOST_ITERATIONS, MOST_WORK]] = _UNLIMITED
        self._point(ERRORS, self.errors)

    def limit(self, budget: Budget) -> None:
        """Set the iterations and the work that native loops may spend to what is left of limits."""
        self.errors[MOST_ITERATIONS] = min(budget.iterations, _UNLIMITED)
        self.errors[MOST_WORK] = min(budget.work, _UNLIMITED)

    def spend(self, budget: Budget) -> None:
        """Subtract what native loops have spent; raises LimitError if it is more than is left."""
        iterations, budget.work = int(self.errors[ITERATIONS]), budget.work - int(self.errors[WORK])
        self.errors[[ITERATIONS, WORK]] = 0
        if not iterations:
            return
        try:
            spend_iteration(0, iterations)
        except LimitError as error:
            loops = self._program.plan.loops
            raise error.located(loops[int(self.errors[EXCEEDED])]) if loops else error from error

    def copy(self) -> Binding:
        """Return a binding with another table that has the same addresses so far."""
        made = object.__new__(Binding)
        made._program, made._keys, made._kept = self._program, self._keys, [*self._kept]
        made.table, made.errors = self.table.copy(), self.errors
        return made

    def bind(self, buffer: Buffer, array: Array) -> None:
        """Bind a contiguous array."""
        self._point(buffer.number, array)

    def bind_inputs(self, arrays: Mapping[int, Any] | Sequence[Any]) -> None:
        """Bind the inputs that kernels read, by slot; raises Mismatch if one is no array."""
        for slot, buffer in self._program.input_buffers.items():
            array = arrays[slot]
            if not isinstance(array, np.ndarray):
                raise Mismatch("an input is no tensor")
            self.bind(buffer, np.require(cast("Array", array), None, ["C", "A"]))

    def bind_known(self, sizes: RunSizes, buffers: Iterable[Buffer] | None = None) -> dict[int, Array]:
        """Bind the tensors that sizes determine, and return them by slot; `buffers` None means all."""
        found = known_of(self._program, sizes, buffers)
        for buffer, array in found.items():
            self.bind(buffer, array)
        return {buffer.slot: array for buffer, array in found.items()}

    def bind_keys(self, sizes: RunSizes) -> None:
        """Bind random words, the keys of the random numbers of this run, if the plan draws any."""
        for buffer in self._program.key_buffers:
            self._keys = allocated((sizes(buffer.size),), np.dtype(np.uint8))
            self._point(buffer.number, self._keys)
        self.draw()

    def draw(self) -> None:
        """Replace the random words by new ones."""
        if self._keys is not None:
            self._keys[:] = np.frombuffer(os.urandom(self._keys.size), np.uint8)

    def bind_arena(self, part: PlanPart, layout: PartLayout, threads: int) -> tuple[Array, ...]:
        """Bind the arena of a part, and the scratch memory of all threads if kernels need any; return both.

        They come from the spare blocks of the program, and the caller may give them back. Raises Mismatch if
        there is not enough memory.
        """
        take = self._program.arenas.take
        arena = take(layout.arena_bytes)
        self._point(part.arena, arena)
        if not layout.scratch_bytes:
            return (arena,)
        scratch = take(layout.scratch_bytes * threads)
        self._point(SCRATCH, scratch)
        return arena, scratch

    def _point(self, number: int, array: Array) -> None:
        self._kept.append(array)
        self.table[number] = array.ctypes.data


def known_of(
    program: CompiledProgram, sizes: RunSizes, buffers: Iterable[Buffer] | None = None
) -> dict[Buffer, Array]:
    """Return the tensors that sizes determine, by buffer; `buffers` None means all of the plan."""
    among = program.plan.buffers if buffers is None else buffers
    return {buffer: program.known(buffer, sizes) for buffer in among if buffer.kind == "known"}


__all__ = ["UNUSED", "Binding", "known_of"]
