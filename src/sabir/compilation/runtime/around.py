"""The evaluated calls around the kernels of a plan: fast runs evaluate its head first, and its tail last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.compilation.native._entrance import InputSpec
from sabir.compilation.plan.entries import Entry, EvaluatedEntry
from sabir.compilation.runtime.head import Head
from sabir.compilation.runtime.tail import Tail
from sabir.elements import element

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from sabir.base import Limits
    from sabir.compilation.plan.entries import Buffer
    from sabir.compilation.plan.layout import PartLayout, RunSizes
    from sabir.compilation.runtime.program import CompiledProgram


class _Steps(NamedTuple):
    """The evaluated calls before and after all kernels."""

    head: list[EvaluatedEntry]
    tail: list[EvaluatedEntry]


class Around:
    """The evaluated calls around the kernels of a plan.

    `native` are the outputs, (name, slot) pairs, that kernels compute. `head` is None where neither a call
    precedes the kernels nor a feed has texts. `buffers` are those of its results that kernels read.
    """

    def __init__(
        self, program: CompiledProgram, steps: _Steps, feeds: Sequence[tuple[int, np.dtype[Any]]],
        outputs: Sequence[tuple[str, int]], limits: Limits | None,
    ) -> None:  # fmt: skip
        self._program, self._steps, self._outputs, self._limits = program, steps.tail, outputs, limits
        self.native = [(name, slot) for name, slot in outputs if slot in program.plan.outputs]
        has_head = steps.head or any(dtype.hasobject for _, dtype in feeds)
        self.head = Head(program, steps.head, feeds, limits) if has_head else None
        self.buffers: list[Buffer] = [b for step in steps.head for b in step.writes.values()]
        self._ready = [*(slot for slot, _ in feeds), *(() if self.head is None else self.head.slots)]

    def inputs(self, sizes: RunSizes) -> list[InputSpec]:
        """Return the results of the head that kernels read, as inputs of a frame after the feeds."""
        return [
            InputSpec(b.number, element(b.element).dtype, tuple(map(sizes, b.shape))) for b in self.buffers
        ]

    def has_all_operands(self) -> bool:
        """Return whether a run has the values that the calls of the tail read, without further work."""
        made = {slot for step in self._steps for slot in self._program.calls[step.call.place].outputs}
        known = {buffer.slot for buffer in self._program.plan.buffers if buffer.kind == "known"}
        ready = {*self._ready, *made, *self._program.constants, *known}
        return all(ready.union(step.reads).issuperset(step.call.reads) for step in self._steps)

    def tail(self, layout: PartLayout, sizes: RunSizes) -> Tail | None:
        """Return the tail for the sizes of a layout; None where kernels compute all outputs."""
        if not self._steps and len(self.native) == len(self._outputs):
            return None
        return Tail(self._program, layout, sizes, self._steps, self._ready, self._outputs, self._limits)


def around_kernels(
    program: CompiledProgram, feeds: Sequence[tuple[int, np.dtype[Any]]],
    outputs: Sequence[tuple[str, int]], limits: Limits | None,
) -> Around | None:  # fmt: skip
    """Return the evaluated calls around the kernels of a plan; None if others are between them.

    `feeds` are (slot, dtype), `outputs` (name, slot) of results.
    """
    steps = _steps(program)
    if steps is None:
        return None
    found = Around(program, steps, feeds, outputs, limits)
    return found if found.has_all_operands() else None


def _steps(program: CompiledProgram) -> _Steps | None:
    """Return the evaluated calls around the kernels of a plan; None if there are others."""
    entries = program.plan.entries
    kernels = [n for n, entry in enumerate(entries) if isinstance(entry, Entry)]
    first, last = (kernels[0], kernels[-1]) if kernels else (len(entries), -1)
    found = _Steps([], [])
    for number, entry in enumerate(entries):
        if isinstance(entry, Entry):
            continue
        call = program.calls[entry.call.place]
        if first < number < last or entry.decides or call.nested or call.cost > 1:
            return None
        if number < first and not entry.reads:
            found.head.append(entry)
        elif {read[0].kind for read in entry.reads.values()} <= {"arena", "output"} and not entry.writes:
            found.tail.append(entry)
        else:
            return None
    return found


__all__ = ["Around", "around_kernels"]
