"""Bands: a loop that calls several kernels for some rows of an image, then for the next rows.

The tensors between the kernels stay in the cache of the core. The kernels are the same as for a whole image:
each call passes a block of arguments for the kind of band, and a table with the addresses at which the band
begins in each buffer. In this table, the memory between the kernels has the index of the arena.
"""

from __future__ import annotations

from dataclasses import dataclass

from sabir.compilation.backends.cpu.emit.arguments import Arguments, buffer_at
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Emitter, Register
from sabir.compilation.plan.bands import BANDS, CALLS
from sabir.compilation.plan.entries import ARENA, ERRORS, FIRST, SCRATCH

MOST_TENSORS = 61
"""The largest number of tensors that the kernels of a band read and write."""
_WORD = 8
# the variants of a band; _MIDDLE + 1 and _LAST + 1 are for a thread that has computed the previous band
_FIRST, _MIDDLE, _LAST = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Bands:
    """The specification of the loop over bands; the kernels that it calls are arguments."""

    def __str__(self) -> str:
        return "bands"


def bands_text(_: Bands) -> str:
    """Return the LLVM module of the loop over bands."""
    e = Emitter()
    arguments = Arguments(e, BANDS)
    items, count = arguments.number("items"), arguments.number("bands")
    table = e.stack((FIRST + MOST_TENSORS) * _WORD)
    _begin(arguments, table)
    low, high = e.share(e.mul(items, count))
    with e.loop(low, high) as job:
        band = e.binary("urem", job, count)
        _move(arguments, table, e.binary("udiv", job, count), band)
        ends = e.compare("icmp eq", band, e.add(count, -1))
        variant = e.select(ends, e.index(_LAST), e.index(_MIDDLE))
        follows = e.convert("zext", e.compare("icmp sgt", job, low), "i64")
        begins = e.compare("icmp eq", band, e.index(0))
        variant = e.select(begins, e.index(_FIRST), e.add(variant, follows))
        _calls(Arguments(e, CALLS, arguments.number("lists", variant)), table)
    return e.text()


def _begin(arguments: Arguments, table: Register) -> None:
    """Emit the entries of the table that all bands share: errors, and the memory of this thread."""
    e = arguments.e
    mine = e.mul(Register("%thread", INDEX), arguments.number("scratch_bytes"))
    own = e.offset(buffer_at(e, e.index(SCRATCH)), mine)
    _set(e, table, e.index(ERRORS), buffer_at(e, e.index(ERRORS)))
    _set(e, table, e.index(ARENA), own)
    _set(e, table, e.index(SCRATCH), e.offset(own, arguments.number("own_bytes")))


def _move(arguments: Arguments, table: Register, item: Register, band: Register) -> None:
    """Emit the addresses in the table of all tensors for a band of an item."""
    e = arguments.e
    with e.loop(e.index(0), arguments.number("tensor_count")) as number:
        tensor = arguments.repeated("tensors", number)
        base = buffer_at(e, tensor.number("buffer"))
        base = e.offset(base, e.mul(item, tensor.number("item")))
        base = e.offset(base, e.mul(band, tensor.number("band")))
        _set(e, table, e.add(number, FIRST), base)


def _calls(calls: Arguments, table: Register) -> None:
    """Emit the calls of a list; each has the only share of its kernel."""
    e = calls.e
    with e.loop(e.index(0), calls.number("count")) as number:
        call = calls.repeated("calls", number)
        kernel = call.address("kernel")
        block = e.offset(e.block, call.number("block"), "i64")
        e.effect(f"call void {kernel.name}({block}, {table}, i64 0, i64 1, i64 0)")


def _set(e: Emitter, table: Register, number: Register, base: Register) -> None:
    e.effect(f"store {base}, {e.offset(table, number, 'i64')}, align 8")
