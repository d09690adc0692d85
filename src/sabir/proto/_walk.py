"""The walk over a serialised message that replaces some of its fields, and all it takes to stay well-formed.

The walk serves the reader, which takes bulk data out, and the writer, which puts it in. It touches only what
lies on a route to such a field; all else is kept as it is, byte for byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.proto._wire import (
    LENGTH,
    MAX_DEPTH,
    MORE,
    SMALLEST_TAG,
    VARINT,
    WIRE_TYPE,
    WireFaultError,
    encode_varint,
    read_tag,
    read_varint,
    skip_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sabir.proto._routes import Route, Routes
    from sabir.proto._types import Buffer, Payload


class Edit(NamedTuple):
    """Bytes `start` to `stop` of the data become `prefix` and, after it, `payload`."""

    start: int
    stop: int
    prefix: bytes
    payload: Payload = b""


def _always(_body: int, _stop: int) -> bool:
    return True


def _nothing(_body: int, _stop: int) -> None:
    return None


class Plan(NamedTuple):
    """What a walk does: nothing below `threshold` bytes, no message that `enter` declines.

    `replace` is given where bulk data begins and ends, and returns what to put there, or None.
    """

    threshold: int
    enter: Callable[[int, int], bool] = _always
    replace: Callable[[int, int], Payload | None] = _nothing
    max_depth: int = MAX_DEPTH


class _Frame:
    """A message that the walk is in; `slot` is the place of its own length among the edits."""

    __slots__ = ("body", "growth", "head", "routes", "slot", "stop")

    def __init__(self, routes: Routes, head: int, body: int, stop: int, slot: int) -> None:
        self.routes, self.head, self.body, self.stop, self.slot = routes, head, body, stop, slot
        self.growth = 0


def plan_edits(data: Buffer, routes: Routes, plan: Plan) -> list[Edit]:
    """Return the edits that a walk over `data` calls for, in order.

    Raises WireFaultError where the walked part breaks the wire format or nests too deep.
    """
    edits: list[Edit | None] = []
    parents: list[_Frame] = []
    frame = _Frame(routes, 0, 0, len(data), -1)
    pos = 0
    while True:
        found = _next_field(data, pos, frame, plan.threshold)
        if found is None:
            if not parents:
                return [edit for edit in edits if edit is not None]
            pos = frame.stop
            parents[-1].growth += _close(frame, edits)
            frame = parents.pop()
            continue
        head, body, pos, route = found
        if route.inner is None:
            frame.growth += _replace(plan, head, body, pos, edits)
        elif plan.enter(body, pos):
            parents.append(frame)
            if len(parents) > plan.max_depth:
                raise WireFaultError(f"messages nested more than {plan.max_depth} deep", head)
            frame = _Frame(route.inner, head, body, pos, len(edits))
            edits.append(None)
            pos = body


def apply_edits(data: Buffer, edits: Iterable[Edit]) -> Iterator[Payload]:
    """Yield the buffers that make the edited data, the untouched runs as slices of it."""
    pos = 0
    for start, stop, prefix, payload in edits:
        if start > pos:
            yield data[pos:start]
        yield prefix
        if len(payload):
            yield payload
        pos = stop
    if pos < len(data):
        yield data[pos:]


def edited_size(data: Buffer, edits: Iterable[Edit]) -> int:
    """Return how many bytes the edited data will have."""
    return len(data) + sum(len(e.prefix) + len(e.payload) - (e.stop - e.start) for e in edits)


def _replace(plan: Plan, head: int, body: int, stop: int, edits: list[Edit | None]) -> int:
    payload = plan.replace(body, stop)
    if payload is None:
        return 0
    prefix = encode_varint(len(payload))
    edits.append(Edit(head, stop, prefix, payload))
    return len(prefix) + len(payload) - (stop - head)


def _close(frame: _Frame, edits: list[Edit | None]) -> int:
    """Correct the length of a message that has changed; return by how much its parent grows."""
    if not frame.growth:
        return 0
    prefix = encode_varint(frame.stop - frame.body + frame.growth)
    edits[frame.slot] = Edit(frame.head, frame.body, prefix)
    return frame.growth + len(prefix) - (frame.body - frame.head)


def _next_field(data: Buffer, pos: int, frame: _Frame, threshold: int) -> tuple[int, int, int, Route] | None:
    """Return the next field of at least `threshold` bytes on a route: its length's start, body, end, route.

    What remains of the message once it is shorter than the threshold is left unread: protobuf will judge it.
    """
    try:
        found, end = _scan(data, pos, frame.stop, frame.routes, threshold)
    except (IndexError, WireFaultError):
        raise _fault(data, pos, frame.stop) from None
    if end > frame.stop:
        raise _fault(data, pos, frame.stop)
    return found


def _scan(
    data: Buffer, pos: int, stop: int, routes: Routes, threshold: int
) -> tuple[tuple[int, int, int, Route] | None, int]:
    """Return what `_next_field` does, and where the scan ended.

    The hot loop: a large model costs one turn a node. So it reads the commonest shapes of a field itself,
    and keeps no account of where it is beyond the position.
    """
    route_of, limit = routes.get, stop - threshold
    while pos < limit:
        tag = data[pos]
        pos += 1
        if not SMALLEST_TAG <= tag < MORE:
            tag, pos = read_tag(data, pos - 1)
        wire = tag & WIRE_TYPE
        if wire == LENGTH:
            head = pos
            size = data[pos]
            pos += 1
            if size >= MORE:
                size, pos = read_varint(data, head)
            body = pos
            pos += size
            if size >= threshold and pos <= stop and (route := route_of(tag)) is not None:
                return (head, body, pos, route), pos
        elif wire == VARINT and data[pos] < MORE:
            pos += 1
        else:
            pos = skip_value(data, pos, tag)
    return None, pos


def _fault(data: Buffer, pos: int, stop: int) -> WireFaultError:
    """Step once more through a message that cannot be read, to say which field of it is at fault."""
    start = pos
    try:
        while pos < stop:
            start = pos
            tag, pos = read_tag(data, pos)
            pos = skip_value(data, pos, tag)
    except IndexError:
        return WireFaultError("the data ends within this field", start)
    except WireFaultError as fault:
        return WireFaultError(fault.reason, start)
    return WireFaultError(f"this field reaches {pos - stop} bytes beyond the end of its message", start)
