"""Unknown fields: those of a message that are not in the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.unknown_fields import UnknownFieldSet

from sabir.proto._routes import routes_to_nesting
from sabir.proto._walk import WalkOptions, collect_edits
from sabir.proto._wire import (
    END_GROUP,
    FIXED32,
    FIXED64,
    GROUP,
    LENGTH,
    VARINT,
    WireFaultError,
    encode_varint,
)

if TYPE_CHECKING:
    from sabir.proto._types import Message, UnknownValue

SHALLOW = 60
"""The levels of messages in which DiscardUnknownFields works; below it silently does nothing."""

# A deeper message has at least two bytes for each further level, so a short walk into long fields is enough
# to suspect one.
_SUSPECT_DEPTH = 8
_SUSPECT_BYTES = 2 * (SHALLOW - _SUSPECT_DEPTH)


def unknown_bytes(message: Message) -> bytes:
    """Return the unknown fields of one message, without those of messages in it, as wire bytes.

    `other.MergeFromString(...)` of these adds the same unknown fields to another message of the class.
    """
    return _encode(UnknownFieldSet(message))


def has_unknown(message: Message) -> bool:
    """Return whether a message, or any in it, has unknown fields."""
    return has_shallow_unknown(message) or (_may_be_deep(message) and _any_unknown(message))


def has_shallow_unknown(message: Message) -> bool:
    """Return whether a message, or any within `SHALLOW` levels below it, has unknown fields."""
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return known.ByteSize() != message.ByteSize()


def _encode(fields: UnknownFieldSet) -> bytes:
    return b"".join(_encode_field(f.field_number, f.wire_type, f.data) for f in fields)


def _encode_field(number: int, wire: int, value: UnknownValue) -> bytes:
    tag = encode_varint(number << 3 | wire)
    if wire == VARINT:
        return tag + encode_varint(value)
    if wire == FIXED64:
        return tag + value.to_bytes(8, "little")
    if wire == FIXED32:
        return tag + value.to_bytes(4, "little")
    if wire == LENGTH:
        return tag + encode_varint(len(value)) + value
    # protobuf read this group, so it is nested no deeper than protobuf allows
    return tag + _encode(value) + encode_varint(number << 3 | END_GROUP) if wire == GROUP else b""


def _may_be_deep(message: Message) -> bool:
    options = WalkOptions(_SUSPECT_BYTES, max_depth=_SUSPECT_DEPTH)
    try:
        collect_edits(message.SerializeToString(), routes_to_nesting(message.DESCRIPTOR), options)
    except WireFaultError:
        return True
    return False


def _any_unknown(message: Message) -> bool:
    waiting = [message]
    while waiting:
        one = waiting.pop()
        if len(UnknownFieldSet(one)):
            return True
        for field, value in one.ListFields():
            if field.message_type is not None:
                waiting.extend([value] if hasattr(value, "DESCRIPTOR") else value)
    return False
