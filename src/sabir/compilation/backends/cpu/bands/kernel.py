"""Bands: kernels that run one after another for some rows of an image, then for the next rows.

What one of them computes for the next one stays in the cache of the thread. The kernels are those that would
run for a whole image: each gets a block of arguments for a band, and a table of buffers that begin there.
"""

from __future__ import annotations

from dataclasses import dataclass

from sabir.compilation.backends.cpu.emit.emitter import INDEX, POINTER, Emitter, Register

# the block: these numbers, `TENSORS` and what follows it, the lists of calls, the blocks of the kernels
ITEMS, COUNT, SCRATCH_BYTES, OWN_BYTES = 0, 1, 2, 3
LISTS = 4
VARIANTS = 5
TENSORS = LISTS + VARIANTS
MOST_TENSORS = 61
"""How many tensors the kernels of a band read and write, at most."""
OWN_MEMORY = 1
"""The buffer of the memory between the kernels of a band; 0 is that of errors, 2 their scratch memory."""
FIRST_TENSOR = 3
_SCRATCH = 2  # the buffer of scratch memory
_WORD = 8
_FIRST, _MIDDLE, _LAST = 0, 1, 3  # the variants of bands; that after each but the first continues a band


@dataclass(frozen=True, slots=True)
class Bands:
    """Kernels that run for band after band; which ones they are is data."""

    def __str__(self) -> str:
        return "bands"


def bands_text(_: Bands) -> str:
    """Return the LLVM module of the loop over bands.

    Arguments: how many items and how many bands of each, the bytes of scratch memory of a thread and of the
    memory between kernels, with which it begins; where the list of calls is for the first band, for one in
    the middle and for the last, and for both of these once more, after the band before; how many tensors
    there are, and of each its buffer and the bytes from item to item and from band to band. A list has a
    length, and of each call the kernel and the place of its arguments. Places count numbers of the block.
    """
    e = Emitter()
    items, count = e.argument(ITEMS), e.argument(COUNT)
    table = e.stack((FIRST_TENSOR + MOST_TENSORS) * _WORD)
    _begin(e, table)
    low, high = e.share(e.mul(items, count))
    with e.loop(low, high) as job:
        band = e.binary("urem", job, count)
        _move(e, table, e.binary("udiv", job, count), band)
        ends = e.compare("icmp eq", band, e.add(count, -1))
        variant = e.select(ends, e.index(_LAST), e.index(_MIDDLE))
        follows = e.convert("zext", e.compare("icmp sgt", job, low), "i64")
        begins = e.compare("icmp eq", band, e.index(0))
        variant = e.select(begins, e.index(_FIRST), e.add(variant, follows))
        _calls(e, table, _number(e, e.add(variant, LISTS)))
    return e.text()


def _begin(e: Emitter, table: Register) -> None:
    """Emit the buffers that are the same for all bands: that of errors, and this thread's memory."""
    mine = e.mul(Register("%thread", INDEX), e.argument(SCRATCH_BYTES))
    own = e.offset(_buffer(e, e.index(_SCRATCH)), mine)
    _set(e, table, e.index(0), _buffer(e, e.index(0)))
    _set(e, table, e.index(OWN_MEMORY), own)
    _set(e, table, e.index(_SCRATCH), e.offset(own, e.argument(OWN_BYTES)))


def _move(e: Emitter, table: Register, item: Register, band: Register) -> None:
    """Emit where all tensors begin for a band of an item."""
    with e.loop(e.index(0), e.argument(TENSORS)) as tensor:
        place = e.add(e.mul(tensor, 3), TENSORS + 1)
        base = _buffer(e, _number(e, place))
        base = e.offset(base, e.mul(item, _number(e, e.add(place, 1))))
        base = e.offset(base, e.mul(band, _number(e, e.add(place, 2))))
        _set(e, table, e.add(tensor, FIRST_TENSOR), base)


def _calls(e: Emitter, table: Register, first: Register) -> None:
    """Emit the calls of a list, each by one thread of one."""
    with e.loop(e.index(0), _number(e, first)) as call:
        place = e.add(e.add(first, e.mul(call, 2)), 1)
        kernel = e.value(POINTER, f"load ptr, {_place(e, place)}, align 8")
        block = _place(e, _number(e, e.add(place, 1)))
        e.effect(f"call void {kernel.name}({block}, {table}, i64 0, i64 1, i64 0)")


def _place(e: Emitter, place: Register) -> Register:
    return e.offset(e.block, place, "i64")


def _number(e: Emitter, place: Register) -> Register:
    return e.value(INDEX, f"load i64, {_place(e, place)}, align 8")


def _buffer(e: Emitter, number: Register) -> Register:
    slot = e.offset(Register("%buffers", POINTER), number, "i64")
    return e.value(POINTER, f"load ptr, {slot}, align 8")


def _set(e: Emitter, table: Register, number: Register, base: Register) -> None:
    e.effect(f"store {base}, {e.offset(table, number, 'i64')}, align 8")
