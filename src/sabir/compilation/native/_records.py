"""Records of 64-bit fields that native code reads: field names, memory, and functions of their addresses."""

from __future__ import annotations

import ctypes
import functools
import re
from array import array
from typing import TYPE_CHECKING, Any

from sabir.compilation.native._objects import Library

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.compilation.native._target import Target

_FIELD = re.compile(r"^  %(\w+) = field (\w+) %(\w+)\.(\w+)$", re.MULTILINE)


def fields(*names: str) -> dict[str, int]:
    """Return the index of each field of a record, by name.

    >>> fields('rows', 'count')
    {'rows': 0, 'count': 1}
    """
    return {name: place for place, name in enumerate(names)}


def with_fields(text: str, **records: Mapping[str, int]) -> str:
    """Expand accesses to fields in LLVM IR; `records` has the fields of a record by the name of its pointer.

    `%count = field i64 %frame.count` loads a field, and `%count = field at %frame.count` is its address.

    >>> print(with_fields('  %count = field i64 %frame.count', frame=fields('rows', 'count')))
      %count_at = getelementptr i64, ptr %frame, i64 1
      %count = load i64, ptr %count_at
    """

    def access(match: re.Match[str]) -> str:
        register, kind, pointer, name = match.groups()
        place = records[pointer][name]
        if kind == "at":
            return f"  %{register} = getelementptr i64, ptr %{pointer}, i64 {place}"
        if not place:
            return f"  %{register} = load {kind}, ptr %{pointer}"
        return (
            f"  %{register}_at = getelementptr i64, ptr %{pointer}, i64 {place}\n"
            f"  %{register} = load {kind}, ptr %{register}_at"
        )

    return _FIELD.sub(access, text)


class Record:
    """The memory of a record: its fields, as an array that is faster than one of ctypes, and its address."""

    __slots__ = ("address", "numbers")

    def __init__(self, numbers: Iterable[int]) -> None:
        self.numbers = array("q", numbers)
        self.address = self.numbers.buffer_info()[0]


@functools.cache
def native_function(text: str, target: Target, result: Any, arguments: int = 1) -> Any:
    """Return the function of a text, with `arguments` addresses as arguments; it is never freed."""
    library = _loaded(text, target)
    return ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * arguments)(library.addresses[0])


@functools.cache
def _loaded(text: str, target: Target) -> Library:
    return Library.load([text], target)
