"""State in place: kernels that write new values over old ones are the last kernels of a plan.

An optimizer reads each element of a parameter and of its state once, and writes it once. So it can write
over its inputs, which halves the memory that it touches. A run that fails must leave the state unchanged: all
work that can fail or be interrupted comes before the first of these kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.transposes import can_transpose
from sabir.compilation.backends.cpu.emit.nest import Apply, Load, Nest, access_name
from sabir.compilation.plan.decisions import PLAN, Reason
from sabir.compilation.plan.entries import BufferNumber, Entry, Offset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.compilation.plan.entries import Argument, Buffer, KernelPlan

    Users = dict[Buffer, list[int]]


# why a result is not written over an input
_EVALUATED = Reason("the plan has evaluated calls, which may fail")
_CONTROL = Reason("kernels are chosen or repeated in a run")
_READ = Reason("another kernel reads the result")
_OTHER_ORDER = Reason("the result has another order of elements")
_OTHER_TYPE = Reason("the result has another type")
_NOT_PLAIN = Reason("its kernel is not plain loops over elements that cannot fail")
_OTHERS_READ = Reason("its kernel has results that others read")
_OTHER_PLACES = Reason("its kernel reads other elements of the input than it writes, or later")
_OLD_VALUES = Reason("another of these kernels reads the old values")


def updates_last(plan: KernelPlan, pairs: Mapping[int, int]) -> None:
    """Move the entries that can write results over inputs to the end of a plan, and record them in the plan.

    `pairs` maps the slot of a result to the slot of the input whose new value it is. A plan with evaluated
    calls does not change, because calls may fail.
    """
    entries = [e for e in plan.entries if isinstance(e, Entry)]
    if not pairs:
        return
    if plan.has_control:
        plan.decisions.add(PLAN, "in place", "results in new memory", "written over inputs", _CONTROL)
        return
    if len(entries) < len(plan.entries):
        plan.decisions.add(PLAN, "in place", "results in new memory", "written over inputs", _EVALUATED)
        return
    users: Users = {}
    for number, entry in enumerate(entries):
        for buffer in dict.fromkeys(entry.buffers):
            users.setdefault(buffer, []).append(number)
    possible = _candidates(plan, entries, users, pairs)
    found = _alone(possible, users)
    for number, over in possible.items():
        for new in over:
            if new in found.get(number, {}):
                plan.decisions.add(entries[number].nodes, "in place", "written over its input")
            else:
                _reject(plan, entries[number], _OLD_VALUES)
    if not found:
        return
    order = [*(n for n in range(len(entries)) if n not in found), *sorted(found)]
    places = {number: place for place, number in enumerate(order)}
    for buffer in plan.buffers:
        if buffer.first >= 0:
            used = [buffer.first, buffer.last, *(n for n in users.get(buffer, ()) if n in found)]
            buffer.first, buffer.last = min(places[n] for n in used), max(places[n] for n in used)
    plan.entries = [entries[n] for n in order]
    plan.updating = len(entries) - len(found)
    plan.in_place = {new.slot: old.slot for over in found.values() for new, old in over.items()}


def _candidates(
    plan: KernelPlan, entries: list[Entry], users: Users, pairs: Mapping[int, int]
) -> dict[int, dict[Buffer, Buffer]]:
    """Return by number the entries that can write results over inputs; each maps result to input."""
    inputs = {b.slot: b for b in plan.buffers if b.kind == "input"}
    found: dict[int, dict[Buffer, Buffer]] = {}
    for result, given in pairs.items():
        new, old = plan.outputs.get(result), inputs.get(given)
        if new is None or old is None or new not in users:
            continue
        number, *others = users[new]
        rejected = _READ if others else _why_apart(entries[number], users, new, old)
        if rejected is None:
            found.setdefault(number, {})[new] = old
        else:
            _reject(plan, entries[number], rejected)
    return found


def _reject(plan: KernelPlan, entry: Entry, because: Reason) -> None:
    plan.decisions.add(entry.nodes, "in place", "result in new memory", "written over its input", because)


def _why_apart(entry: Entry, users: Users, new: Buffer, old: Buffer) -> Reason | None:
    """Return why an entry cannot write a result over an input; None if it can."""
    if new.kind != "output" or new.strides is not None:
        return _OTHER_ORDER
    if (new.element, new.shape) != (old.element, old.shape):
        return _OTHER_TYPE
    if not _is_plain(entry):
        return _NOT_PLAIN
    if any(b.kind != "output" or len(users[b]) != 1 for b in entry.writes):
        return _OTHERS_READ
    return None if _lies_over(entry, new, old) else _OTHER_PLACES


def _is_plain(entry: Entry) -> bool:
    """Return whether an entry is one loop nest without folds and transposition."""
    if entry.loop is not None or len(entry.choices) != 1 or not entry.writes:
        return False
    nest = entry.choices[0][2]
    return isinstance(nest, Nest) and not any(nest.reduced) and not can_transpose(nest)


def _lies_over(entry: Entry, new: Buffer, old: Buffer) -> bool:
    """Return whether a nest reads only the input element that the result overwrites, before the store."""
    _, _, nest, arguments = entry.choices[0]
    if not isinstance(nest, Nest):
        return False
    places = places_of(nest, arguments)
    written = [number for number, place in enumerate(places) if place[0] is new]
    read = [number for number, place in enumerate(places) if place[0] is old]
    if len(written) != 1 or any(places[number][1:] != places[written[0]][1:] for number in read):
        return False
    return all(number in _read_before(nest, written[0]) for number in read)


def _read_before(nest: Nest, written: int) -> set[int]:
    """Return the accesses that are loaded before a store: those that it and earlier stores depend on."""
    pending: list[int] = []
    for access, value in nest.stores:
        pending.append(value)
        if access == written:
            break
    found, seen = set[int](), set[int]()
    while pending:
        number = pending.pop()
        step = nest.steps[number]
        if number not in seen and isinstance(step, Apply):
            pending += step.operands
        if isinstance(step, Load):
            found.add(step.access)
        seen.add(number)
    return found


def places_of(nest: Nest, arguments: list[Argument]) -> list[tuple[object, ...]]:
    """Return for each access its buffer, the access, its byte offset and its strides."""
    found: list[tuple[object, ...]] = []
    signature = nest.signature
    for number, access in enumerate(nest.accesses):
        named, offset = signature.read(arguments, access_name(number), "tensor")
        strides = signature.read(arguments, access_name(number), "strides")
        buffer = named.buffer if isinstance(named, BufferNumber) else None
        first = offset.bytes if isinstance(offset, Offset) else offset
        found.append((buffer, access, first, *strides))
    return found


def _alone(found: dict[int, dict[Buffer, Buffer]], users: Users) -> dict[int, dict[Buffer, Buffer]]:
    """Return `found` without inputs that another of its entries reads: that must read the old values."""
    while True:
        kept = {
            number: {
                new: old
                for new, old in over.items()
                if not any(n in found and n != number for n in users[old])
            }
            for number, over in found.items()
        }
        kept = {number: over for number, over in kept.items() if over}
        if kept == found:
            return kept
        found = kept


__all__ = ["places_of", "updates_last"]
