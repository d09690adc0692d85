"""The sections and symbols of an object, an ELF file: what it needs from outside, and what it consists of."""

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
_TABLE = "_GLOBAL_OFFSET_TABLE_"  # the linker makes it


class Section(NamedTuple):
    """A section: its type and flags, its bytes in the file, and the numbers of the sections that it names."""

    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class Symbol(NamedTuple):
    """A symbol: the place of its name in the table of names, and its section and place there."""

    name: int
    section: int
    value: int


def undefined_symbols(image: bytes) -> list[str]:
    """Return the names of the functions and data that an object expects elsewhere, sorted.

    Raises ValueError where the bytes are not an object for a processor that kernels are made for, as LLVM
    writes them.
    """
    try:
        sections = list(sections_of(image))
        found = {name for s in sections if s.kind == SYMBOLS for name in _undefined(image, s, sections)}
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"the object is damaged: {error}") from None
    return sorted(found - {"", _TABLE})


def sections_of(image: bytes) -> Iterator[Section]:
    """Yield the sections of an object; raises ValueError or struct.error where it is damaged."""
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
    """Return the symbols of a table; raises ValueError where it is damaged."""
    if table.kind != SYMBOLS or table.entry != _SYMBOL.size or table.offset + table.size > len(image):
        raise ValueError("the object has a damaged table of symbols")
    found = _SYMBOL.iter_unpack(
        image[table.offset : table.offset + table.size // _SYMBOL.size * _SYMBOL.size]
    )
    return [Symbol(name, section, value) for name, _, _, section, value, _ in found]


def names_of(image: bytes, table: Section, sections: list[Section]) -> bytes:
    """Return the names of a table of symbols, each with a zero after it."""
    names = sections[table.link]
    return image[names.offset : names.offset + names.size]


def _undefined(image: bytes, table: Section, sections: list[Section]) -> Iterator[str]:
    text = names_of(image, table, sections)
    for symbol in symbols_of(image, table):
        if symbol.section == _UNDEFINED:
            yield text[symbol.name : text.index(b"\0", symbol.name)].decode()
