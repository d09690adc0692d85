"""What an object needs from outside: the undefined symbols of an ELF file."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = struct.Struct("<4s5B7xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOLS = 2  # the type of the section with the table of symbols
_UNDEFINED = 0
_MACHINES = {62, 183}  # x86-64 and AArch64
_TABLE = "_GLOBAL_OFFSET_TABLE_"  # the linker makes it


class _Section(NamedTuple):
    kind: int
    offset: int
    size: int
    link: int
    entry: int


def undefined_symbols(image: bytes) -> list[str]:
    """Return the names of the functions and data that an object expects elsewhere, sorted.

    Raises ValueError where the bytes are not an object for a processor that kernels are made for, as LLVM
    writes them.
    """
    try:
        sections = list(_sections(image))
        found = {name for s in sections if s.kind == _SYMBOLS for name in _undefined(image, s, sections)}
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"the object is damaged: {error}") from None
    return sorted(found - {"", _TABLE})


def _sections(image: bytes) -> Iterator[_Section]:
    magic, bits, order, version, *_, kind, machine, _, _, _, start, _, _, _, _, size, count, _ = (
        _HEADER.unpack_from(image)
    )
    if (magic, bits, order, version, kind) != (b"\x7fELF", 2, 1, 1, 1) or machine not in _MACHINES:
        raise ValueError("this is not an object file for x86-64 or AArch64 processors")
    if size != _SECTION.size:
        raise ValueError("the object has sections of another format")
    for place in range(count):
        _, what, _, _, offset, length, link, _, _, entry = _SECTION.unpack_from(image, start + place * size)
        yield _Section(what, offset, length, link, entry)


def _undefined(image: bytes, table: _Section, sections: list[_Section]) -> Iterator[str]:
    if table.entry != _SYMBOL.size or table.offset + table.size > len(image):
        raise ValueError("the object has a damaged table of symbols")
    names = sections[table.link]
    text = image[names.offset : names.offset + names.size]
    for at in range(table.offset, table.offset + table.size, _SYMBOL.size):
        name, _, _, section, _, _ = _SYMBOL.unpack_from(image, at)
        if section == _UNDEFINED:
            yield text[name : text.index(b"\0", name)].decode()
