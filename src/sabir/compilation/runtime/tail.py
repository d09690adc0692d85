"""The tail of a plan: evaluated calls after all kernels, which make texts, sequences or maps of tensors.

A fast run makes them on arrays that refer to the memory of its kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import ACCIDENTS, SabirError, run_with_limits
from sabir.compilation.plan.entries import Buffer, Entry, EvaluatedEntry
from sabir.compilation.runtime.contents import contains_arrays
from sabir.elements import element
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.base import Limits
    from sabir.compilation.plan.layout import PartLayout, RunSizes
    from sabir.compilation.runtime.program import CompiledProgram
    from sabir.evaluation import BoundCall
    from sabir.ir import Array


_EXACT = frozenset("biuO")  # kinds of numpy: what reads these alone to put texts together divides nothing


class _View(NamedTuple):
    """A tensor that a call reads, in the arena or in a result of kernels."""

    slot: int
    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    offset: int


class Tail:
    """The calls of the tail of a plan, for one list of shapes; it `is_whole` if it finds all that they read.

    Their functions are called as they are: the run that went the long way has compared types, and counted
    what the same shapes need.
    """

    def __init__(
        self, program: CompiledProgram, layout: PartLayout, sizes: RunSizes, fed: Sequence[int],
        outputs: Sequence[tuple[str, int]], limits: Limits | None,
    ) -> None:  # fmt: skip
        """Take a plan with a tail, its layout, the slots of its feeds, and the outputs by name and slot."""
        steps = [e for e in program.plan.entries if isinstance(e, EvaluatedEntry)]
        calls: list[BoundCall] = [program.calls[step.call.place] for step in steps]
        read = {slot for step in steps for slot in step.call.reads}
        made = {slot for call in calls for slot in call.outputs}
        self._calls = [(call.function, call.inputs, call.outputs) for call in calls]
        self._limits = limits
        self._slots: list[Any] = [None] * program.executable.slots
        known = [(b.slot, program.known(b, sizes)) for b in program.plan.buffers if b.kind == "known"]
        for slot, array in (*program.constants.items(), *known):
            self._slots[slot] = array
        views = [_view(slot, *at, layout, sizes) for step in steps for slot, at in step.reads.items()]
        self._views = [view for view in views if view.buffer.kind == "arena"]
        self._parts = [view for view in views if view.buffer.kind == "output"]
        wanted = read | {view.buffer.slot for view in self._parts}
        self._fed = [(number, slot) for number, slot in enumerate(fed) if slot in wanted]
        self._native = [(name, slot) for name, slot in outputs if slot not in made and slot in wanted]
        self._made = [(name, slot) for name, slot in outputs if slot in made]
        self._names = [name for name, _ in outputs]
        at_hand = {*fed, *made, *program.constants, *(slot for slot, _ in known)}
        self.is_whole = read <= at_hand | {view.slot for view in views}
        kinds = {element(view.buffer.element).dtype.kind for view in views}
        kinds |= {self._slots[slot].dtype.kind for slot in read if isinstance(self._slots[slot], np.ndarray)}
        self._warns = bool(kinds - _EXACT) or not read.isdisjoint({*fed, *made}) or bool(self._native)

    def slots(self, arena: Array) -> list[Any]:
        """Return the values of a frame by slot: constants, and what lies in its arena."""
        slots = [*self._slots]
        for view in self._views:
            slots[view.slot] = _array(view, arena)
        return slots

    def finish(
        self, slots: Sequence[Any], feeds: Sequence[Any], native: Mapping[str, Array]
    ) -> dict[str, Any] | None:
        """Return all outputs by name, those of kernels among them.

        None where a call fails, so that the long way says why.
        """
        try:
            if self._limits is None:  # a call that asks for limits gets the defaults
                made = self._run(slots, feeds, native)
            else:
                made = run_with_limits(self._limits, self._run, slots, feeds, native)
        except (SabirError, *ACCIDENTS):
            return None
        return {name: made[name] if name in made else native[name] for name in self._names}

    def _run(self, slots: Sequence[Any], feeds: Sequence[Any], native: Mapping[str, Array]) -> dict[str, Any]:
        values = [*slots]
        others: set[int] = set()
        for number, slot in self._fed:
            values[slot] = feeds[number]
            others.add(id(feeds[number]))
        for name, slot in self._native:
            values[slot] = native[name]
            others.add(id(native[name]))
        for view in self._parts:
            values[view.slot] = _array(view, values[view.buffer.slot].reshape(-1).view(np.uint8))
        if self._warns:
            with np.errstate(all="ignore"):
                self._call(values)
        else:
            self._call(values)
        return {name: _own(values[slot], others) for name, slot in self._made}

    def _call(self, values: list[Any]) -> None:
        for function, inputs, outputs in self._calls:
            found = function(*[values[slot] for slot in inputs])
            if type(found) is np.ndarray:
                values[outputs[0]] = found
                continue
            for slot, value in zip(outputs, as_results(found), strict=False):
                is_number = isinstance(value, np.generic)
                values[slot] = np.asarray(cast("Array", value)) if is_number else value


def has_tail(program: CompiledProgram) -> bool:
    """Return whether all that a plan evaluates is a tail; none of its calls has a subgraph."""
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


def _view(
    slot: int, buffer: Buffer, offset: Any, strides: Any, shape: Any, layout: PartLayout, sizes: RunSizes
) -> _View:
    width = element(buffer.element).dtype.itemsize
    start = sizes(offset) * width + layout.offsets.get(buffer, 0)
    steps = tuple(sizes(stride) * width for stride in strides)
    return _View(slot, buffer, tuple(map(sizes, shape)), steps, start)


def _array(view: _View, memory: Array) -> Array:
    dtype = element(view.buffer.element).dtype
    if 0 in view.shape:
        return np.empty(view.shape, dtype)
    found: Array = np.ndarray(view.shape, dtype, memory, view.offset, view.strides)
    found.flags.writeable = False
    return found


def _own(value: Any, others: set[int]) -> Any:
    """Return a result that is the caller's own; lists and maps are those that this run has made."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        if array.base is not None or not array.flags.writeable or id(array) in others:
            return array.copy()
        others.add(id(array))
        return array
    if isinstance(value, (list, dict)) and not contains_arrays(value):
        return cast("Any", value)
    if isinstance(value, list):
        return [_own(x, others) for x in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _own(x, others) for key, x in cast("dict[Any, Any]", value).items()}
    return value
