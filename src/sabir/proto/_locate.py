"""From a byte offset to a path such as `graph.initializer[3].raw_data`."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from sabir.proto._wire import LENGTH, WIRE_TYPE, WireFaultError, read_tag, read_varint, skip_value

if TYPE_CHECKING:
    from sabir.proto._types import Buffer, Descriptor, FieldDescriptor


def locate(data: Buffer, descriptor: Descriptor, offset: int) -> str:
    """Return the path of the field that begins at `offset`, as far as the bytes can be read."""
    path: list[str] = []
    start, stop = 0, len(data)
    while descriptor is not None and start <= offset < stop:
        step = None
        with suppress(IndexError, WireFaultError):
            step = _field_at(data, start, stop, offset)
        if step is None:
            break
        number, index, begin, start, stop = step
        field = descriptor.fields_by_number.get(number)
        path.append(_step_name(field, number, index))
        descriptor = None if field is None or begin == offset else field.message_type
    return ".".join(path)


def _step_name(field: FieldDescriptor, number: int, index: int) -> str:
    if field is None:
        return f"field {number}"
    # a field that is not repeated may still be twice on the wire; its index would only mislead
    return f"{field.name}[{index}]" if _is_repeated(field) else field.name


def _is_repeated(field: FieldDescriptor) -> bool:
    # `label` is deprecated in newer releases of protobuf, `is_repeated` is missing in older ones
    known = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if known is None else bool(known)


def _field_at(data: Buffer, pos: int, stop: int, offset: int) -> tuple[int, int, int, int, int] | None:
    """Return number, index, start, body and end of the field that contains `offset`."""
    seen: Counter[int] = Counter()
    while pos < stop:
        begin = pos
        tag, value = read_tag(data, pos)
        number = tag >> 3
        if begin == offset:
            return number, seen[number], begin, value, stop
        pos = skip_value(data, value, tag)
        if offset < pos:
            body = read_varint(data, value)[1] if tag & WIRE_TYPE == LENGTH else value
            return number, seen[number], begin, body, min(pos, stop)
        seen[number] += 1
    return None
