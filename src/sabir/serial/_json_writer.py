"""Writing protobuf's JSON mapping."""

from __future__ import annotations

import base64
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.serial._fields import (
    BYTES,
    DOUBLE,
    ENUM,
    FLOAT,
    INT64,
    LARGEST_FLOAT,
    MESSAGE,
    UINT64,
    Field,
    fields_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_plain = json.JSONEncoder(ensure_ascii=False).encode


def write_json(message: Any) -> str:
    """Return a message as JSON, with the field names of the schema; unknown fields are left out."""
    return _object_text(message, "\n")


def _object_text(message: Any, indent: str) -> str:
    """Return a message as an object whose lines begin with `indent`; the json module indents more slowly."""
    inner = indent + "  "
    known = fields_of(message)
    fields = [
        f'"{descriptor.name}": {_field_text(known[descriptor.name], descriptor, value, inner)}'
        for descriptor, value in message.ListFields()
    ]
    return _bracketed("{}", fields, indent)


def _field_text(field: Field, descriptor: Any, value: Any, indent: str) -> str:
    if field.kind == ENUM:
        return _plain(descriptor.enum_type.values_by_number[value].name)
    write = _WRITERS.get(field.kind, _plain)
    if field.kind != MESSAGE:
        return _bracketed("[]", [write(v) for v in value], indent) if field.repeated else write(value)
    if not field.repeated:
        return _object_text(value, indent)
    return _bracketed("[]", [_object_text(v, indent + "  ") for v in value], indent)


def _bracketed(brackets: str, items: list[str], indent: str) -> str:
    if not items:
        return brackets
    inner = indent + "  "
    return f"{brackets[0]}{inner}{f',{inner}'.join(items)}{indent}{brackets[1]}"


def _integer_text(value: int) -> str:
    return f'"{value}"'


def _bytes_text(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _double_text(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _float_text(value: float) -> str:
    """Return the shortest number that rounds to this 32-bit float."""
    if not math.isfinite(value):
        return _double_text(value)
    short = float(str(np.float32(value)))
    # the shortest form of the largest float is above it, and protobuf refuses that
    return repr(short if abs(short) <= LARGEST_FLOAT else value)


_WRITERS: dict[int, Callable[[Any], str]] = {
    BYTES: _bytes_text, FLOAT: _float_text, DOUBLE: _double_text, INT64: _integer_text, UINT64: _integer_text,
}  # fmt: skip
