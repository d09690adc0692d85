"""The tail of a plan: evaluated calls after all kernels, such as those that make texts, sequences or maps.

A fast run evaluates them on arrays that are views of the memory of its kernels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ACCIDENTS, SabirError, run_with_limits
from sabir.compilation.runtime.binding import known_of
from sabir.compilation.runtime.values import EXACT, DirectCalls, View, copies_of, shape_and_dtype, with_copies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.base import Limits
    from sabir.compilation.plan.entries import Buffer, EvaluatedEntry
    from sabir.compilation.plan.layout import PartLayout, RunSizes
    from sabir.compilation.runtime.program import CompiledProgram
    from sabir.evaluation import BoundCall
    from sabir.ir import Array


class _Read(NamedTuple):
    """A tensor that a call reads from the arena, or from an output of kernels."""

    slot: int
    buffer: Buffer
    view: View


class Tail:
    """The calls of the tail of a plan, for fixed shapes.

    Their functions are called without checks: the first run, on the slow path, has compared the types, and
    counted the needs of these shapes.
    """

    def __init__(
        self, program: CompiledProgram, layout: PartLayout, sizes: RunSizes, steps: Sequence[EvaluatedEntry],
        fed: Sequence[int], outputs: Sequence[tuple[str, int]], limits: Limits | None,
    ) -> None:  # fmt: skip
        """Create the tail of a plan, the calls of `steps`.

        `fed` are the slots of the values that a run has before its kernels, `outputs` are (name, slot) pairs.
        """
        calls: list[BoundCall] = [program.calls[step.call.place] for step in steps]
        read = {slot for step in steps for slot in step.call.reads}
        self._limits = limits
        self._slots: list[Any] = [None] * program.executable.slots
        known = {b.slot: array for b, array in known_of(program, sizes).items()}
        for slot, array in (program.constants | known).items():
            self._slots[slot] = array
        reads = [
            _Read(slot, at[0], View.of(at, layout.offsets, sizes))
            for step in steps
            for slot, at in step.reads.items()
        ]
        self._views = [r for r in reads if r.buffer.kind == "arena"]
        native = program.plan.outputs
        whole = {r.slot: r.buffer.slot for r in reads if r.buffer.kind == "output" and _is_whole(r, sizes)}
        self._whole = [*whole.items()]
        self._parts = [r for r in reads if r.buffer.kind == "output" and r.slot not in whole]
        results = [(name, slot) for name, slot in outputs if slot not in native]
        wanted = read | {r.buffer.slot for r in reads} | {slot for _, slot in results}
        self._fed = [(number, slot) for number, slot in enumerate(fed) if slot in wanted]
        self._native = [(name, slot) for name, slot in outputs if slot in native and slot in wanted]
        self._made = results
        self._names = [name for name, _ in outputs]
        exact = {r.slot for r in reads if r.view.dtype.kind in EXACT}
        exact |= {slot for slot, x in (program.constants | known).items() if x.dtype.kind in EXACT}
        self._calls = DirectCalls(calls, exact)
        self._foreign = [*(slot for _, slot in self._fed), *(slot for _, slot in self._native)]

    def slots(self, arena: Array) -> list[Any]:
        """Return the values of a frame by slot: constants, and views of its arena."""
        slots = [*self._slots]
        for slot, _, view in self._views:
            slots[slot] = view.array(arena)
        return slots

    def finish(
        self, slots: Sequence[Any], feeds: Sequence[Any], native: Mapping[str, Array]
    ) -> dict[str, Any] | None:
        """Return all outputs by name, including those of kernels.

        None if a call fails: then the slow path reports the error.
        """
        try:
            if self._limits is None:  # then the default limits apply
                made = self._run(slots, feeds, native)
            else:
                made = run_with_limits(self._limits, self._run, slots, feeds, native)
        except (SabirError, *ACCIDENTS):
            return None
        return {name: made[name] if name in made else native[name] for name in self._names}

    def _run(self, slots: Sequence[Any], feeds: Sequence[Any], native: Mapping[str, Array]) -> dict[str, Any]:
        values = [*slots]
        for number, slot in self._fed:
            values[slot] = feeds[number]
        for name, slot in self._native:
            values[slot] = native[name]
        for slot, result in self._whole:
            values[slot] = values[result]
        for slot, buffer, view in self._parts:
            values[slot] = view.array(values[buffer.slot].reshape(-1).view(np.uint8))
        self._calls.make(values)
        copied = copies_of([values[slot] for slot in self._foreign])
        return {name: with_copies(values[slot], copied) for name, slot in self._made}


def _is_whole(read: _Read, sizes: RunSizes) -> bool:
    """Return whether a call reads an output of kernels as it is: all of it, in the same shape."""
    shape, dtype = shape_and_dtype(read.buffer, sizes)
    view = read.view
    if view.offset or view.shape != shape or view.dtype != dtype:
        return False
    strides = [math.prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
    return all(s == t or size == 1 for s, t, size in zip(view.strides, strides, shape, strict=True))
