"""A walk over a serialised message that replaces some of its fields, and corrects the lengths around them.

The reader takes bulk data out with it, and the writer puts it in. All bytes that are not on a route to such a
field stay unchanged.
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


class WalkOptions(NamedTuple):
    """What a walk looks at: fields of at least `threshold` bytes, in messages that `enter` accepts.

    `replace` is called with the start and end of bulk data, and returns its replacement, or None.
    """

    threshold: int
    enter: Callable[[int, int], bool] = _always
    replace: Callable[[int, int], Payload | None] = _nothing
    max_depth: int = MAX_DEPTH


class _EnteredMessage:
    """A message that the walk has entered; `slot` is the place of the edit of its length."""

    __slots__ = ("body", "growth", "head", "routes", "slot", "stop")

    def __init__(self, routes: Routes, head: int, body: int, stop: int, slot: int) -> None:
        self.routes, self.head, self.body, self.stop, self.slot = routes, head, body, stop, slot
        self.growth = 0


def collect_edits(data: Buffer, routes: Routes, options: WalkOptions) -> list[Edit]:
    """Return the edits of a walk over `data`, in order.

    Raises WireFaultError where the walked part breaks the wire format or is nested too deep.
    """
    edits: list[Edit | None] = []
    parents: list[_EnteredMessage] = []
    frame = _EnteredMessage(routes, 0, 0, len(data), -1)
    pos = 0
    while True:
        found = _next_field(data, pos, frame, options.threshold)
        if found is None:
            if not parents:
                return [edit for edit in edits if edit is not None]
            pos = frame.stop
            parents[-1].growth += _close(frame, edits)
            frame = parents.pop()
            continue
        head, body, pos, route = found
        if route.inner is None:
            frame.growth += _replace(options, head, body, pos, edits)
        elif options.enter(body, pos):
            parents.append(frame)
            if len(parents) > options.max_depth:
                raise WireFaultError(f"messages nested more than {options.max_depth} deep", head)
            frame = _EnteredMessage(route.inner, head, body, pos, len(edits))
            edits.append(None)
            pos = body


def apply_edits(data: Buffer, edits: Iterable[Edit]) -> Iterator[Payload]:
    """Yield the buffers of the edited data; those without edits are slices of `data`."""
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
    """Return the size of the edited data."""
    return len(data) + sum(len(e.prefix) + len(e.payload) - (e.stop - e.start) for e in edits)


def _replace(options: WalkOptions, head: int, body: int, stop: int, edits: list[Edit | None]) -> int:
    payload = options.replace(body, stop)
    if payload is None:
        return 0
    prefix = encode_varint(len(payload))
    edits.append(Edit(head, stop, prefix, payload))
    return len(prefix) + len(payload) - (stop - head)


def _close(frame: _EnteredMessage, edits: list[Edit | None]) -> int:
    """Correct the length of a message that has changed, and return by how much its parent grows."""
    if not frame.growth:
        return 0
    prefix = encode_varint(frame.stop - frame.body + frame.growth)
    edits[frame.slot] = Edit(frame.head, frame.body, prefix)
    return frame.growth + len(prefix) - (frame.body - frame.head)


def _next_field(
    data: Buffer, pos: int, frame: _EnteredMessage, threshold: int
) -> tuple[int, int, int, Route] | None:
    """Return the next field of at least `threshold` bytes on a route: its length's start, body, end, route.

    The end of a message is not read once it is shorter than the threshold: protobuf checks it later.
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

    This is the hot loop, with one iteration for each node of a large model. So it decodes the most common
    fields itself, and keeps no state but the position.
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
    """Read an invalid message again, field by field, and return the error of the one that is invalid."""
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
