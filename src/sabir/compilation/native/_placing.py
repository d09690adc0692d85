"""Loading of machine code without LLVM: the image of an object, and executable memory.

Kernels have no undefined symbols. So the image of an object is its sections one after another, with the
PC-relative relocations between them applied; it is position-independent. LLVM's linker can do more, but LLVM
takes 30 ms and 80 MB to load, which a process without new kernels can save.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
import sys
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.native._elf import SYMBOLS, Section, names_of, sections_of, symbols_of
from sabir.compilation.native._system import machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PROGRAM, _REFERENCES, _SHORT_REFERENCES, _UNWINDING = 1, 4, 9, 0x70000001  # types of sections
_WRITTEN, _ALLOCATED = 1, 2  # their flags
_DISTANCES = frozenset((2, 4))  # R_X86_64_PC32 and R_X86_64_PLT32: distances of 32 bits
_REFERENCE = struct.Struct("<QQq")
_DISTANCE = struct.Struct("<i")
_ALIGNMENT = 64
_WORD = (1 << 32) - 1


class Image(NamedTuple):
    """The machine code of a kernel, aligned to 64 bytes; `entry` is the offset of its function."""

    code: bytes
    entry: int


def can_place() -> bool:
    """Return whether this system supports images; on others, LLVM's linker loads objects."""
    return sys.platform == "linux" and machine() == "x86_64"


def image_of(data: bytes, symbol: str) -> Image:
    """Return the image of an object whose function has the name `symbol`.

    Raises ValueError for an object that is damaged, or has other relocations than distances.
    """
    try:
        return _image(data, symbol.encode())
    except (struct.error, IndexError, KeyError) as error:
        raise ValueError(f"the object is damaged, or of another form: {error!r}") from None


def _image(data: bytes, symbol: bytes) -> Image:
    sections = list(sections_of(data))
    code, places = _concatenated(data, sections)
    for section in sections:
        if section.info not in places:
            continue
        if section.kind == _SHORT_REFERENCES:
            raise ValueError("the object has references of another form")
        if section.kind == _REFERENCES:
            _fill_in(code, data, section, sections, places)
    entry = _entry(data, sections, places, symbol)
    if not 0 <= entry < len(code):
        raise ValueError("the function is outside of the object")
    return Image(bytes(code), entry)


def _concatenated(data: bytes, sections: Sequence[Section]) -> tuple[bytearray, dict[int, int]]:
    """Return the concatenated sections that are needed at run time, and their offsets by section number."""
    code = bytearray()
    places: dict[int, int] = {}
    for number, section in enumerate(sections):
        if not section.flags & _ALLOCATED or section.kind == _UNWINDING:
            continue
        alignment = max(section.alignment, 1)
        if section.kind != _PROGRAM or section.flags & _WRITTEN or _ALIGNMENT % alignment:
            raise ValueError("the object has a section that an image cannot have")
        code += bytes(-len(code) % alignment)
        places[number] = len(code)
        code += data[section.offset : section.offset + section.size]
        if len(code) != places[number] + section.size:
            raise ValueError("the object is truncated")
    return code, places


def _fill_in(
    code: bytearray, data: bytes, table: Section, sections: list[Section], places: Mapping[int, int]
) -> None:
    """Apply the relocations of one section in `table`: write the distances to their symbols into `code`."""
    start, size = places[table.info], sections[table.info].size
    symbols = symbols_of(data, sections[table.link])
    for place, kind, extra in _REFERENCE.iter_unpack(data[table.offset : table.offset + table.size]):
        if kind & _WORD not in _DISTANCES or place + _DISTANCE.size > size:
            raise ValueError("the object has a reference that an image cannot have")
        target = symbols[int(kind >> 32)]
        distance = places[target.section] + target.value + extra - (start + place)
        _DISTANCE.pack_into(code, start + place, distance)


def _entry(data: bytes, sections: list[Section], places: Mapping[int, int], name: bytes) -> int:
    """Return the offset of the function with a name; raises ValueError if there is none."""
    for table in sections:
        if table.kind == SYMBOLS:
            names = names_of(data, table, sections)
            for symbol in symbols_of(data, table):
                if names.startswith(name + b"\0", symbol.name):
                    return places[symbol.section] + symbol.value
    raise ValueError("the object does not have its function")


# ---------------------------------------------------------------- memory


class Memory(NamedTuple):
    """Executable, read-only memory of the process: its address and its size in bytes."""

    address: int
    size: int

    def free(self) -> None:
        """Unmap the memory; no thread may be executing it."""
        _system().munmap(self.address, self.size)


def placed(images: Sequence[Image]) -> tuple[Memory, list[int]] | None:
    """Copy images to new memory; return it with the address of each image, None if the system refuses."""
    starts, whole = list[int](), bytearray()
    for image in images:
        whole += bytes(-len(whole) % _ALIGNMENT)
        starts.append(len(whole))
        whole += image.code
    system = _system()
    shared = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = system.mmap(None, len(whole), mmap.PROT_READ | mmap.PROT_WRITE, shared, -1, 0)
    if address == ctypes.c_void_p(-1).value:
        return None
    memory = Memory(address, len(whole))
    ctypes.memmove(address, bytes(whole), len(whole))
    if system.mprotect(address, len(whole), mmap.PROT_READ | mmap.PROT_EXEC):
        memory.free()  # the system forbids new executable code
        return None
    return memory, [address + start for start in starts]


def code_at(address: int, size: int) -> bytes:
    """Return the bytes of an image in memory."""
    return ctypes.string_at(address, size)


@functools.cache
def _system() -> ctypes.CDLL:
    system = ctypes.CDLL(None)
    word, number = ctypes.c_void_p, ctypes.c_int
    system.mmap.argtypes = [word, ctypes.c_size_t, number, number, number, ctypes.c_long]
    system.mmap.restype = word
    system.mprotect.argtypes = [word, ctypes.c_size_t, number]
    system.munmap.argtypes = [word, ctypes.c_size_t]
    return system
