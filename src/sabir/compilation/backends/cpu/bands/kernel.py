"""Bands: kernels that run one after another for some rows of an image, then for the next rows.

What one of them computes for the next one stays in the cache of the thread. The kernels are those that would
run for a whole image: each gets a block of arguments for a band, and a table of buffers that begin there. In
this table the memory between kernels is where the arena else is.
"""

from __future__ import annotations

from dataclasses import dataclass

from sabir.compilation.backends.cpu.emit.arguments import Arguments, buffer_at
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Emitter, Register
from sabir.compilation.plan.bands import BANDS, CALLS
from sabir.compilation.plan.entries import ARENA, ERRORS, FIRST, SCRATCH

MOST_TENSORS = 61
"""How many tensors the kernels of a band read and write, at most."""
_WORD = 8
_FIRST, _MIDDLE, _LAST = 0, 1, 3  # the variants of bands; that after each but the first continues a band


@dataclass(frozen=True, slots=True)
class Bands:
    """Kernels that run for band after band; which ones they are is data."""

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
    """Emit the buffers that are the same for all bands: that of errors, and this thread's memory."""
    e = arguments.e
    mine = e.mul(Register("%thread", INDEX), arguments.number("scratch_bytes"))
    own = e.offset(buffer_at(e, e.index(SCRATCH)), mine)
    _set(e, table, e.index(ERRORS), buffer_at(e, e.index(ERRORS)))
    _set(e, table, e.index(ARENA), own)
    _set(e, table, e.index(SCRATCH), e.offset(own, arguments.number("own_bytes")))


def _move(arguments: Arguments, table: Register, item: Register, band: Register) -> None:
    """Emit where all tensors begin for a band of an item."""
    e = arguments.e
    with e.loop(e.index(0), arguments.number("tensor_count")) as number:
        tensor = arguments.repeated("tensors", number)
        base = buffer_at(e, tensor.number("buffer"))
        base = e.offset(base, e.mul(item, tensor.number("item")))
        base = e.offset(base, e.mul(band, tensor.number("band")))
        _set(e, table, e.add(number, FIRST), base)


def _calls(calls: Arguments, table: Register) -> None:
    """Emit the calls of a list, each by one thread of one."""
    e = calls.e
    with e.loop(e.index(0), calls.number("count")) as number:
        call = calls.repeated("calls", number)
        kernel = call.address("kernel")
        block = e.offset(e.block, call.number("block"), "i64")
        e.effect(f"call void {kernel.name}({block}, {table}, i64 0, i64 1, i64 0)")


def _set(e: Emitter, table: Register, number: Register, base: Register) -> None:
    e.effect(f"store {base}, {e.offset(table, number, 'i64')}, align 8")
