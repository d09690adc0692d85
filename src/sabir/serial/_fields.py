"""The fields of a message as the readers of protobuf's text formats need them, and the numbers that fit."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any, NamedTuple

MAX_DEPTH = 100
"""How deep messages may be nested, as in the binary format."""

MAX_NUMBER = 400
"""The most characters of a number: no field takes one that needs more."""

DOUBLE, FLOAT, INT64, UINT64, INT32, STRING, MESSAGE, BYTES, ENUM = 1, 2, 3, 4, 5, 9, 11, 12, 14
RANGES = {INT64: (-(1 << 63), (1 << 63) - 1), UINT64: (0, (1 << 64) - 1), INT32: (-(1 << 31), (1 << 31) - 1)}
LARGEST_FLOAT = 2.0**128 - 2.0**104
_FLOAT_END = 2.0**128 - 2.0**103  # from here on a number rounds beyond the largest float of 32 bits


class Field(NamedTuple):
    """One field of a message; `values` are those of an enum."""

    name: str
    kind: int
    repeated: bool
    oneof: str
    values: dict[str, int]

    def accepts(self, number: float) -> bool:
        """Return whether a number is finite and in the range of this float field."""
        return math.isfinite(number) and (self.kind == DOUBLE or abs(number) < _FLOAT_END)


def fields_of(message: Any) -> dict[str, Field]:
    """Return the fields of a message by name."""
    return _fields(message.__class__)


@cache
def fields_by_key(message_class: Any) -> dict[str, Field]:
    """Return the fields of a message class by their names in JSON: both `raw_data` and `rawData`."""
    known = _fields(message_class)
    camel = {re.sub(r"_(.)", lambda match: match[1].upper(), name): field for name, field in known.items()}
    return {**camel, **known}


@cache
def _fields(message_class: Any) -> dict[str, Field]:
    empty = message_class()
    return {
        f.name: Field(
            f.name,
            f.type,
            hasattr(getattr(empty, f.name), "extend"),
            f.containing_oneof.name if f.containing_oneof else "",
            {v.name: v.number for v in f.enum_type.values} if f.enum_type else {},
        )
        for f in message_class.DESCRIPTOR.fields
    }
