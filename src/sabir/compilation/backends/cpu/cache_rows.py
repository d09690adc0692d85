"""Rows of caches in place: a run that writes some rows of an input returns the input, and copies nothing.

A model is pure: it copies a cache, and writes the new rows into the copy. Where nothing reads the old rows
after that, both may be the same memory. Whether they are is the choice of each run: the kernel that copies
does nothing if both tensors begin at the same address. So one plan serves both.

Unlike the updates of `in_place`, rows are written at any time of a run: a cache has a length apart from it,
and rows beyond that do not count until the caller increases it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.transposes import can_transpose
from sabir.compilation.backends.cpu.emit.nest import Load, Nest
from sabir.compilation.backends.cpu.in_place import places_of
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.compilation.plan.entries import Buffer, KernelPlan

# why a cache is copied in each run
_CONTROL = Reason("kernels are chosen or repeated in a run")
_OTHER_TYPE = Reason("the result has another type or order of elements")
_NO_COPY = Reason("the rows are not written into a copy of the input")
_READ_LATER = Reason("a kernel reads the input after rows were written")


def caches_in_place(plan: KernelPlan, pairs: Mapping[int, int]) -> None:
    """Let kernels that copy caches do nothing for results in the memory of inputs, and record these.

    `pairs` maps the slot of a result to the slot of the input whose rows it has. Whether both have the same
    shape is compared in each run.
    """
    inputs = {b.slot: b for b in plan.buffers if b.kind == "input"}
    for result, given in pairs.items():
        new, old = plan.outputs.get(result), inputs.get(given)
        if new is None or old is None:
            continue
        entries = [(n, e) for n, e in enumerate(plan.entries) if isinstance(e, Entry)]
        copies = [n for n, e in entries if _copies(e, old, new)]
        rejected = _why_copied(plan, copies, new, old)
        entry = plan.entries[copies[0]] if copies else None
        labels = next((e.nodes for _, e in entries if new in e.buffers), ())
        if rejected is None and isinstance(entry, Entry):
            limit, most, nest, arguments = entry.choices[0]
            if isinstance(nest, Nest):
                entry.choices[0] = limit, most, replace(nest, unless_same=True), arguments
                plan.caches[result] = given
                plan.decisions.add(labels, "cache", "written in place")
        elif rejected is not None:
            plan.decisions.add(labels, "cache", "copied in each run", "written in place", rejected)


def _why_copied(plan: KernelPlan, copies: list[int], new: Buffer, old: Buffer) -> Reason | None:
    """Return why a cache must be copied; None if its rows can be written in place."""
    if plan.has_control:
        return _CONTROL
    if new.kind != "output" or new.strides is not None or new.element != old.element:
        return _OTHER_TYPE
    if len(copies) != 1:
        return _NO_COPY
    users = [(n, e.buffers) for n, e in enumerate(plan.entries) if isinstance(e, Entry) and n != copies[0]]
    reads = [n for n, buffers in users if old in buffers]
    writes = [n for n, buffers in users if new in buffers]
    return _READ_LATER if reads and writes and max(reads) >= min(writes) else None


def _copies(entry: Entry, old: Buffer, new: Buffer) -> bool:
    """Return whether an entry does nothing but copy an input to the same elements of a result."""
    if entry.loop is not None or len(entry.choices) != 1 or entry.bands is not None:
        return False
    _, _, nest, arguments = entry.choices[0]
    if not isinstance(nest, Nest) or any(nest.reduced) or nest.repeats or can_transpose(nest):
        return False
    if len(nest.stores) != 1 or len(nest.steps) != 1 or not isinstance(nest.steps[0], Load):
        return False
    places = places_of(nest, arguments)
    (written, _), read = nest.stores[0], nest.steps[0].access
    if len(places) != len({written, read}):
        return False
    same = places[written][1:] == places[read][1:]
    return same and places[written][0] is new and places[read][0] is old


__all__ = ["caches_in_place"]
