"""The rows of a tile of a product: where each begins in the operand, and its indices in the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.kernels._emitter import INDEX, POINTER, Register
from sabir.compilation.kernels._jobs import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.kernels._emitter import Emitter

_WORD = 8  # bytes


class Rows(NamedTuple):
    """The first row of a tile, and the address of the operand of each.

    Where rows have several axes, the indices of each row lie in a `table` on the stack.
    """

    first: Register
    addresses: Sequence[Register]
    axes: int
    table: Register | None

    def indices(self, e: Emitter, number: Register) -> list[Register]:
        """Emit the index along each axis of the row with a number in the tile."""
        if self.table is None:
            return [e.add(self.first, number)]
        own = e.offset(self.table, e.mul(number, self.axes * _WORD))
        return [e.load(e.offset(own, e.index(axis * _WORD)), INDEX) for axis in range(self.axes)]


class TileRows:
    """Emits the rows of tiles: `strides` are those of the operand along each axis of rows, in bytes."""

    def __init__(
        self, e: Emitter, count: int, sizes: Sequence[Register], strides: Sequence[Register]
    ) -> None:
        self.e, self.count, self.sizes, self.strides = e, count, sizes, strides

    def emit(self, base: Register, first: Register, last: Register) -> Rows:
        """Emit the rows from one on; those after the last one repeat it."""
        e = self.e
        if len(self.sizes) > 1:
            return self._tabulated(base, first, last)
        places = [e.least(e.add(first, m), e.add(last, -1)) for m in range(self.count)]
        return Rows(first, [self._address(base, [place]) for place in places], 1, None)

    def _tabulated(self, base: Register, first: Register, last: Register) -> Rows:
        """Emit a loop over the rows: emitted for each, they would be a third of the code of a tile."""
        e, axes = self.e, len(self.sizes)
        table, addresses = e.stack(self.count * axes * _WORD), e.stack(self.count * _WORD)
        counters = [e.variable(digit) for digit in digits(e, first, self.sizes)]
        with e.loop(e.index(0), e.index(self.count)) as m:
            place = [e.get(counter) for counter in counters]
            own = e.offset(table, e.mul(m, axes * _WORD))
            for axis, index in enumerate(place):
                e.store(index, e.offset(own, e.index(axis * _WORD)))
            e.store(self._address(base, place), e.offset(addresses, e.mul(m, _WORD)), align=_WORD)
            carry = e.convert("zext", e.compare("icmp slt", e.add(e.add(first, m), 1), last), "i64")
            for counter, digit, size in [*zip(counters, place, self.sizes, strict=True)][:0:-1]:
                after = e.add(digit, carry)
                wraps = e.compare("icmp eq", after, size)
                e.assign(counter, e.select(wraps, e.index(0), after))
                carry = e.convert("zext", wraps, "i64")
            e.assign(counters[0], e.add(place[0], carry))
        places = [e.offset(addresses, e.index(m * _WORD)) for m in range(self.count)]
        return Rows(first, [e.load(place, POINTER, align=_WORD) for place in places], axes, table)

    def _address(self, base: Register, place: Sequence[Register]) -> Register:
        for index, stride in zip(place, self.strides, strict=True):
            base = self.e.offset(base, self.e.mul(index, stride))
        return base
