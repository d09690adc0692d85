"""Which fields of a message a walk follows, derived from the descriptors."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from sabir.proto._wire import LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.proto._types import Descriptor, FieldDescriptor

Routes = dict[int, "Route"]
"""The fields to follow within one message type, by tag."""


class Route(NamedTuple):
    """One field to follow: into a message with its own routes, or, with None, to bulk data itself."""

    inner: Routes | None


@cache
def routes_to_bulk(descriptor: Descriptor) -> Routes:
    """Return the fields through which a message can reach `TensorProto.raw_data`."""
    messages = _reachable(descriptor)
    holders = {d for d in messages if any(_is_bulk(f) for f in d.fields)}
    table = _routes(messages, _reaching(messages, holders))
    for holder in holders:
        table[holder].update({f.number << 3 | LENGTH: Route(None) for f in holder.fields if _is_bulk(f)})
    return table[descriptor]


@cache
def routes_to_nesting(descriptor: Descriptor) -> Routes:
    """Return the fields through which messages can be nested without limit."""
    messages = _reachable(descriptor)
    recursive = {d for d in messages if any(d in _reachable(m) for m in _inner_messages(d))}
    return _routes(messages, _reaching(messages, recursive))[descriptor]


@cache
def routes_to_all(descriptor: Descriptor) -> Routes:
    """Return every field of a message type, at every depth."""
    messages = _reachable(descriptor)
    return _routes(messages, set(messages))[descriptor]


def _routes(messages: list[Descriptor], followed: set[Descriptor]) -> dict[Descriptor, Routes]:
    """Return, for each message type, its fields whose type is in `followed`."""
    table: dict[Descriptor, Routes] = {d: {} for d in messages}
    for descriptor, routes in table.items():
        for field in descriptor.fields:
            if field.message_type in followed:
                routes[field.number << 3 | LENGTH] = Route(table[field.message_type])
    return table


def _reaching(messages: list[Descriptor], goals: set[Descriptor]) -> set[Descriptor]:
    """Return the message types that are a goal or can contain one, at any depth."""
    reaching, size = set(goals), -1
    while size != len(reaching):
        size = len(reaching)
        reaching |= {d for d in messages if not reaching.isdisjoint(_inner_messages(d))}
    return reaching


def _reachable(descriptor: Descriptor) -> list[Descriptor]:
    """Return a message type and all that it can contain, at any depth."""
    found, waiting = {descriptor: None}, [descriptor]
    while waiting:
        new = [d for d in _inner_messages(waiting.pop()) if d not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return list(found)


def _inner_messages(descriptor: Descriptor) -> Iterable[Descriptor]:
    return [f.message_type for f in descriptor.fields if f.message_type is not None]


def _is_bulk(field: FieldDescriptor) -> bool:
    return field.name == "raw_data" and field.containing_type.name == "TensorProto"
