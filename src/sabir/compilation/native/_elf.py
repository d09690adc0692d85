"""A reader of ELF object files: sections, symbols, and undefined symbols."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = struct.Struct("<4s5B7xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
SYMBOLS = 2  # the type of the section with the table of symbols
_UNDEFINED = 0
_MACHINES = {62, 183}  # x86-64 and AArch64
_TABLE = "_GLOBAL_OFFSET_TABLE_"  # the linker defines it


class Section(NamedTuple):
    """A section header: type, flags, range in the file, related sections, alignment, bytes of an entry."""

    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class Symbol(NamedTuple):
    """A symbol: the offset of its name in the string table, the number of its section, the offset there."""

    name: int
    section: int
    value: int


def undefined_symbols(image: bytes) -> list[str]:
    """Return the names of the undefined symbols of an object, sorted.

    Raises ValueError if the bytes are no 64-bit ELF object for x86-64 or AArch64, or are damaged.
    """
    try:
        sections = list(sections_of(image))
        found = {name for s in sections if s.kind == SYMBOLS for name in _undefined(image, s, sections)}
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"the object is damaged: {error}") from None
    return sorted(found - {"", _TABLE})


def sections_of(image: bytes) -> Iterator[Section]:
    """Yield the sections of an object; raises ValueError or struct.error if it is damaged."""
    magic, bits, order, version, *_, kind, machine, _, _, _, start, _, _, _, _, size, count, _ = (
        _HEADER.unpack_from(image)
    )
    if (magic, bits, order, version, kind) != (b"\x7fELF", 2, 1, 1, 1) or machine not in _MACHINES:
        raise ValueError("this is not an object file for x86-64 or AArch64 processors")
    if size != _SECTION.size:
        raise ValueError("the object has sections of another format")
    for place in range(count):
        _, what, flags, _, *rest = _SECTION.unpack_from(image, start + place * size)
        yield Section(what, flags, *rest)


def symbols_of(image: bytes, table: Section) -> list[Symbol]:
    """Return the symbols of a symbol table; raises ValueError if it is damaged."""
    if table.kind != SYMBOLS or table.entry != _SYMBOL.size or table.offset + table.size > len(image):
        raise ValueError("the object has a damaged table of symbols")
    found = _SYMBOL.iter_unpack(
        image[table.offset : table.offset + table.size // _SYMBOL.size * _SYMBOL.size]
    )
    return [Symbol(name, section, value) for name, _, _, section, value, _ in found]


def names_of(image: bytes, table: Section, sections: list[Section]) -> bytes:
    """Return the string table of a symbol table: names, each with a zero byte after it."""
    names = sections[table.link]
    return image[names.offset : names.offset + names.size]


def _undefined(image: bytes, table: Section, sections: list[Section]) -> Iterator[str]:
    text = names_of(image, table, sections)
    for symbol in symbols_of(image, table):
        if symbol.section == _UNDEFINED:
            yield text[symbol.name : text.index(b"\0", symbol.name)].decode()
