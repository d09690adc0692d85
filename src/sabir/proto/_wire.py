"""The protobuf wire format itself: varints, fields, groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)

MAX_DEPTH = 100
"""How deep messages or groups may be nested: protobuf's own limit."""

MORE = 128
"""The bit of a varint's byte that says that another follows; also the first number of two bytes."""

WIRE_TYPE = 7
"""The bits of a tag that are the wire type; the field number is in those above."""

SMALLEST_TAG = 8

_LOW = 127
_MAX_VARINT = 10
_64_BITS = 0xFFFFFFFFFFFFFFFF
_LARGEST_TAG = 0xFFFFFFFF


class WireFaultError(Exception):
    """Bytes that violate the wire format; `offset` is the start of the invalid field.

    It does not leave this package: callers get a `sabir.base.WireError` with the path and the reason.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.reason, self.offset = reason, offset


def encode_varint(value: int) -> bytes:
    """Return the shortest varint of a value from 0 to 2**64 - 1."""
    if value < MORE:
        return bytes((value,))
    out = bytearray()
    while value >= MORE:
        out.append(value & _LOW | MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_number(number: int, value: int) -> bytes:
    """Return a varint field."""
    return encode_varint(number << 3 | VARINT) + encode_varint(value)


def encode_bytes(number: int, value: bytes) -> bytes:
    """Return a length-delimited field."""
    return encode_varint(number << 3 | LENGTH) + encode_varint(len(value)) + value


def read_varint(data: Sequence[int], pos: int) -> tuple[int, int]:
    """Return the varint at `pos` and its end; raises IndexError past the data's end, or WireFaultError."""
    value = shift = 0
    for at in range(pos, pos + _MAX_VARINT):
        byte = data[at]
        value |= (byte & _LOW) << shift
        if byte < MORE:
            return value & _64_BITS, at + 1
        shift += 7
    raise WireFaultError("a number of more than ten bytes", pos)


def read_tag(data: Sequence[int], pos: int) -> tuple[int, int]:
    """Return the tag at `pos` and its end; raises as `read_varint` does."""
    tag, end = read_varint(data, pos)
    if tag < SMALLEST_TAG:
        raise WireFaultError("a field number of 0", pos)
    if tag > _LARGEST_TAG:
        raise WireFaultError("a field number out of range", pos)
    return tag, end


def skip_value(data: Sequence[int], pos: int, tag: int) -> int:
    """Return the end of the value of a field whose tag ends at `pos`.

    It may be past the end of the data, which the caller checks. Raises as `read_tag` does.
    """
    wire = tag & WIRE_TYPE
    if wire == LENGTH:
        size, pos = read_varint(data, pos)
        return pos + size
    if wire == VARINT:
        return read_varint(data, pos)[1]
    if wire == FIXED32:
        return pos + 4
    if wire == FIXED64:
        return pos + 8
    if wire == GROUP:
        return _skip_group(data, pos, tag >> 3)
    if wire == END_GROUP:
        raise WireFaultError("the end of a group that never began", pos)
    raise WireFaultError(f"the unknown wire type {wire}", pos)


def _skip_group(data: Sequence[int], pos: int, number: int) -> int:
    opened = [number]
    while opened:
        start = pos
        tag, pos = read_tag(data, pos)
        if tag & WIRE_TYPE == END_GROUP:
            if opened.pop() != tag >> 3:
                raise WireFaultError("the end of a group other than the one that began", start)
        elif tag & WIRE_TYPE == GROUP:
            opened.append(tag >> 3)
            if len(opened) > MAX_DEPTH:
                raise WireFaultError(f"groups nested more than {MAX_DEPTH} deep", start)
        else:
            pos = skip_value(data, pos, tag)
    return pos
