"""The tail of a plan: evaluated calls after all kernels, such as those that make texts, sequences or maps.

A fast run evaluates them on arrays that are views of the memory of its kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ACCIDENTS, SabirError, run_with_limits
from sabir.compilation.plan.entries import Buffer, Entry, EvaluatedEntry
from sabir.compilation.runtime.binding import known_of
from sabir.compilation.runtime.values import View, copies_of, keep_results, with_copies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.base import Limits
    from sabir.compilation.plan.layout import PartLayout, RunSizes
    from sabir.compilation.runtime.program import CompiledProgram
    from sabir.evaluation import BoundCall
    from sabir.ir import Array


_EXACT = frozenset("biuO")  # numpy kinds for which the calls of a tail cause no floating-point warnings


class _Read(NamedTuple):
    """A tensor that a call reads from the arena, or from an output of kernels."""

    slot: int
    buffer: Buffer
    view: View


class Tail:
    """The calls of the tail of a plan, for fixed shapes; `is_whole` if it has all values that they read.

    Their functions are called without checks: the first run, on the slow path, has compared the types, and
    counted the needs of these shapes.
    """

    def __init__(
        self, program: CompiledProgram, layout: PartLayout, sizes: RunSizes, fed: Sequence[int],
        outputs: Sequence[tuple[str, int]], limits: Limits | None,
    ) -> None:  # fmt: skip
        """Create the tail of a plan; `fed` are the slots of feeds, `outputs` are (name, slot) pairs."""
        steps = [e for e in program.plan.entries if isinstance(e, EvaluatedEntry)]
        calls: list[BoundCall] = [program.calls[step.call.place] for step in steps]
        read = {slot for step in steps for slot in step.call.reads}
        made = {slot for call in calls for slot in call.outputs}
        self._calls = [(call.function, call.inputs, call.outputs) for call in calls]
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
        self._parts = [r for r in reads if r.buffer.kind == "output"]
        wanted = read | {r.buffer.slot for r in self._parts}
        self._fed = [(number, slot) for number, slot in enumerate(fed) if slot in wanted]
        self._native = [(name, slot) for name, slot in outputs if slot not in made and slot in wanted]
        self._made = [(name, slot) for name, slot in outputs if slot in made]
        self._names = [name for name, _ in outputs]
        self.is_whole = read <= {*fed, *made, *program.constants, *known, *(r.slot for r in reads)}
        kinds = {r.view.dtype.kind for r in reads}
        kinds |= {self._slots[slot].dtype.kind for slot in read if isinstance(self._slots[slot], np.ndarray)}
        self._warns = bool(kinds - _EXACT) or not read.isdisjoint({*fed, *made}) or bool(self._native)

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
        others: list[Any] = []
        for number, slot in self._fed:
            values[slot] = feeds[number]
            others.append(feeds[number])
        for name, slot in self._native:
            values[slot] = native[name]
            others.append(native[name])
        for slot, buffer, view in self._parts:
            values[slot] = view.array(values[buffer.slot].reshape(-1).view(np.uint8))
        if self._warns:
            with np.errstate(all="ignore"):
                self._call(values)
        else:
            self._call(values)
        copied = copies_of(others)
        return {name: with_copies(values[slot], copied) for name, slot in self._made}

    def _call(self, values: list[Any]) -> None:
        for function, inputs, outputs in self._calls:
            found = function(*[values[slot] for slot in inputs])
            if type(found) is np.ndarray:
                values[outputs[0]] = found
                continue
            keep_results(values, outputs, found)


def has_tail(program: CompiledProgram) -> bool:
    """Return whether the evaluated calls of a plan all follow its kernels, and have no subgraphs."""
    seen = False
    for entry in program.plan.entries:
        if isinstance(entry, Entry):
            if seen:
                return False
            continue
        seen = True
        call = program.calls[entry.call.place]
        places = {read[0].kind for read in entry.reads.values()}
        if entry.writes or entry.decides or call.nested or call.cost > 1 or places - {"arena", "output"}:
            return False
    return seen
