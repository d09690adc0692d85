"""Reading a model without copying its tensors: bulk data stays in the caller's buffer.

Protobuf would copy every byte. So each large `raw_data` field is replaced with a placeholder first; the rest,
the skeleton, is small and still a valid message of the same type.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from google.protobuf.message import DecodeError

from sabir.base import WireError
from sabir.proto._formats import guess_format
from sabir.proto._messages import ModelProto
from sabir.proto._placeholders import Placeholders, byte_view
from sabir.proto._routes import routes_to_all, routes_to_bulk
from sabir.proto._walk import WalkOptions, apply_edits, collect_edits, edited_size
from sabir.proto._wire import LENGTH, WIRE_TYPE, WireFaultError, read_tag, read_varint, skip_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.proto._types import Buffer, Descriptor, FieldDescriptor, Message, MessageClass

DEFAULT_THRESHOLD = 4096
_FILES = {"ModelProto": "ONNX model", "OperatorSetProto": "operator set"}  # as messages name their messages
_LARGEST_MESSAGE = 2**31 - 1
_SMALLEST_WALKED = 16
"""How many thresholds long the data must be for a search for bulk data."""


class Bulk:
    """The tensor data that one read left in the buffer; its views keep that buffer alive."""

    def __init__(self) -> None:
        self._placeholders: Placeholders[memoryview] = Placeholders(os.urandom)

    def __len__(self) -> int:
        return len(self._placeholders)

    def add(self, view: memoryview) -> bytes:
        """Keep a view, and return its placeholder."""
        return self._placeholders.add(view)

    def release(self) -> None:
        """Drop all views, once their tensors have them."""
        self._placeholders.release()

    def get(self, raw: bytes) -> memoryview | bytes:
        """Return the data of a `raw_data` field: a view for a placeholder, else `raw` itself."""
        view = self._placeholders.get(raw)
        return raw if view is None else view


def read_model(
    data: memoryview | bytes,
    *,
    source: str = "",
    threshold: int = DEFAULT_THRESHOLD,
    cls: MessageClass = ModelProto,
) -> tuple[Message, Bulk]:
    """Read a ModelProto, leaving every `raw_data` of at least `threshold` bytes in `data`.

    `cls` is another class whose messages are files: OperatorSetProto.

    Such a field contains a placeholder, for which `Bulk.get` returns a view of the data. `data` may be any
    object with the buffer protocol, such as a memory map. Errors name `source`.

    Raises WireError where the bytes are no model: empty, truncated or of another format.
    """
    view = byte_view(data)
    bulk = Bulk()
    if not len(view):
        raise WireError(_prefixed(source, "the file is empty"))
    skeleton = _skeleton(cls, view, bulk, source, threshold)
    return _parse(cls, skeleton, view, source), bulk


def read_message(cls: MessageClass, data: memoryview | bytes, *, source: str = "") -> Message:
    """Read a message of any class of this package, with all its data.

    Raises WireError where the bytes are not such a message.
    """
    view = byte_view(data)
    _refuse_oversize(len(view), source)
    return _parse(cls, view, view, source)


def looks_like_model(message: Message) -> bool:
    """Return whether a ModelProto has any part of a model: other bytes may parse as an empty one."""
    return message.HasField("graph") or message.HasField("ir_version") or bool(message.functions)


def _skeleton(cls: MessageClass, view: memoryview, bulk: Bulk, source: str, threshold: int) -> Buffer:
    if len(view) < _SMALLEST_WALKED * threshold:
        return view

    def cut(body: int, stop: int) -> bytes:
        return bulk.add(view[body:stop])

    try:
        edits = collect_edits(view, routes_to_bulk(cls.DESCRIPTOR), WalkOptions(threshold, replace=cut))
    except WireFaultError as fault:
        raise _error(cls, view, source, fault) from None
    _refuse_oversize(edited_size(view, edits), source)
    return b"".join(cast("Iterator[Buffer]", apply_edits(view, edits))) if edits else view


def _parse(cls: MessageClass, skeleton: Buffer, view: memoryview, source: str) -> Message:
    try:
        return cls.FromString(skeleton)
    # protobuf without its C part decodes strings at once, and then raises a UnicodeDecodeError
    except (DecodeError, UnicodeDecodeError) as error:
        raise _error(cls, view, source, _first_fault(cls, view)) from error


def _first_fault(cls: MessageClass, view: memoryview) -> WireFaultError | None:
    """Return where the bytes first break the wire format, which protobuf does not report."""
    try:
        collect_edits(view, routes_to_all(cls.DESCRIPTOR), WalkOptions(threshold=0))
    except WireFaultError as fault:
        return fault
    return None


def _error(cls: MessageClass, view: memoryview, source: str, fault: WireFaultError | None) -> WireError:
    name = _FILES.get(cls.DESCRIPTOR.name, cls.DESCRIPTOR.name)
    guess = guess_format(view)
    if guess is not None:
        return WireError(_prefixed(source, f"no {name}: this looks like {guess}"))
    message = f"truncated or no {name}"
    if fault is None:
        return WireError(_prefixed(source, message))
    path = _locate(view, cls.DESCRIPTOR, fault.offset)
    where = f"{path} at byte {fault.offset}" if path else f"byte {fault.offset}"
    return WireError(_prefixed(source, f"{message}: {where}, of {len(view)}: {fault.reason}"))


def _refuse_oversize(size: int, source: str) -> None:
    if size > _LARGEST_MESSAGE:
        raise WireError(
            _prefixed(
                source,
                f"without its raw_data the message has {size} bytes, and protobuf reads at most "
                f"{_LARGEST_MESSAGE}; keep tensors in raw_data or in external files",
            )
        )


def _prefixed(source: str, message: str) -> str:
    return f"{source}: {message}" if source else message


def _locate(data: Buffer, descriptor: Descriptor, offset: int) -> str:
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
