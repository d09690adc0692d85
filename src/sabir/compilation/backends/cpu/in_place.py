"""State in place: the kernels that can write new values over old ones come last in a plan.

An optimizer reads each element of a parameter and of its state once, and writes it once. So it can write
where it reads, which halves the memory that it goes through. A run that fails must leave the state as it was:
everything that can fail, or be interrupted, comes before the first of these kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.transposes import can_transpose
from sabir.compilation.backends.cpu.emit.nest import ANY, Apply, Layout, Load, Nest
from sabir.compilation.plan.entries import BufferNumber, Entry, Offset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.compilation.plan.entries import Argument, Buffer, KernelPlan

    Users = dict[Buffer, list[int]]


def updates_last(plan: KernelPlan, pairs: Mapping[int, int]) -> None:
    """Let the entries that can write results over inputs be the last ones of a plan, and note which.

    `pairs` has the slots of the inputs whose new values are results, by the slots of these. A plan with
    evaluated calls stays as it is: they may fail.
    """
    entries = [e for e in plan.entries if isinstance(e, Entry)]
    if not pairs or len(entries) < len(plan.entries):
        return
    users: Users = {}
    for number, entry in enumerate(entries):
        for buffer in dict.fromkeys(entry.buffers):
            users.setdefault(buffer, []).append(number)
    found = _alone(_candidates(plan, entries, users, pairs), users)
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
    """Return the entries that can write results over inputs, by their numbers, with these buffers."""
    inputs = {b.slot: b for b in plan.buffers if b.kind == "input"}
    found: dict[int, dict[Buffer, Buffer]] = {}
    for result, given in pairs.items():
        new, old = plan.outputs.get(result), inputs.get(given)
        if new is None or old is None or new.kind != "output" or new.strides is not None:
            continue
        if (new.element, new.shape) != (old.element, old.shape) or len(users.get(new, ())) != 1:
            continue
        (number,) = users[new]
        if _is_last(entries[number], users) and _lies_over(entries[number], new, old):
            found.setdefault(number, {})[new] = old
    return found


def _is_last(entry: Entry, users: Users) -> bool:
    """Return whether an entry is loops that cannot fail, and nothing reads what it writes."""
    if entry.loop is not None or len(entry.choices) != 1 or not entry.writes:
        return False
    nest = entry.choices[0][2]
    if not isinstance(nest, Nest) or any(nest.reduced) or can_transpose(nest):
        return False
    return all(b.kind == "output" and len(users[b]) == 1 for b in entry.writes)


def _lies_over(entry: Entry, new: Buffer, old: Buffer) -> bool:
    """Return whether a nest reads an input, if at all, right where it writes the result, and before that."""
    _, _, nest, arguments = entry.choices[0]
    if not isinstance(nest, Nest):
        return False
    places = _places(nest, arguments)
    written = [number for number, place in enumerate(places) if place[0] is new]
    read = [number for number, place in enumerate(places) if place[0] is old]
    if len(written) != 1 or any(places[number][1:] != places[written[0]][1:] for number in read):
        return False
    return all(number in _read_before(nest, written[0]) for number in read)


def _read_before(nest: Nest, written: int) -> set[int]:
    """Return the accesses that are read before a store: a nest reads what each store needs, in turn."""
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


def _places(nest: Nest, arguments: list[Argument]) -> list[tuple[object, ...]]:
    """Return the buffer of each access, and where its elements lie in it."""
    found: list[tuple[object, ...]] = []
    for access, start in zip(nest.accesses, Layout(nest).accesses, strict=True):
        end = start + 2 + access.strides.count(ANY)
        named, offset, *strides = arguments[start:end]
        buffer = named.buffer if isinstance(named, BufferNumber) else None
        first = offset.bytes if isinstance(offset, Offset) else offset
        found.append((buffer, access, first, *strides))
    return found


def _alone(found: dict[int, dict[Buffer, Buffer]], users: Users) -> dict[int, dict[Buffer, Buffer]]:
    """Return the entries without inputs that others among them read, which must see the old values."""
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


__all__ = ["updates_last"]
