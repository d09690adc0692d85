"""The rows of a tile of a product: their addresses in the first operand, and their indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.emitter import INDEX, Register
from sabir.compilation.backends.cpu.emit.jobs import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Emitter

_WORD = 8  # bytes


class Rows(NamedTuple):
    """The first row of a tile; of each row, the address in the operand and the index along each axis."""

    first: Register
    addresses: Sequence[Register]
    places: Sequence[list[Register]]

    def kept(self, e: Emitter) -> Register | None:
        """Emit the store of the indices to the stack and return its address; None with one axis of rows."""
        axes = len(self.places[0])
        if axes == 1:
            return None
        table = e.stack(len(self.places) * axes * _WORD)
        for number, index in enumerate(index for place in self.places for index in place):
            e.store(index, e.offset(table, e.index(number * _WORD)))
        return table

    def indices(self, e: Emitter, table: Register | None, number: Register) -> list[Register]:
        """Emit the index along each axis of row `number` of the tile; `table` is the result of `kept`."""
        if table is None:
            return [e.add(self.first, number)]
        axes = len(self.places[0])
        own = e.offset(table, e.mul(number, axes * _WORD))
        return [e.load(e.offset(own, e.index(axis * _WORD)), INDEX) for axis in range(axes)]


class TileRows:
    """Emits the `count` rows of a tile; `sizes` and `strides` (bytes) are those of the axes of rows."""

    def __init__(
        self, e: Emitter, count: int, sizes: Sequence[Register], strides: Sequence[Register]
    ) -> None:
        self.e, self.count, self.sizes, self.strides = e, count, sizes, strides

    def emit(self, base: Register, first: Register, last: Register) -> Rows:
        """Emit the rows from `first` on; a partial tile repeats row `last - 1`."""
        e = self.e
        if len(self.sizes) > 1:
            return self._counted(base, first, last)
        places = [[e.least(e.add(first, m), e.add(last, -1))] for m in range(self.count)]
        return Rows(first, [self._address(base, place) for place in places], places)

    def _counted(self, base: Register, first: Register, last: Register) -> Rows:
        """Emit rows with several axes: the indices of each are those of the row before, incremented."""
        e = self.e
        places = [digits(e, first, self.sizes)]
        for m in range(1, self.count):
            places.append(self._next(places[-1], e.compare("icmp slt", e.add(first, m), last)))
        return Rows(first, [self._address(base, place) for place in places], places)

    def _next(self, place: Sequence[Register], condition: Register) -> list[Register]:
        """Return the indices of the next row, or the same ones if `condition` is false."""
        e, found = self.e, list[Register]()
        carry = e.convert("zext", condition, "i64")
        for digit, size in zip(place[:0:-1], self.sizes[:0:-1], strict=True):
            after = e.add(digit, carry)
            wraps = e.compare("icmp eq", after, size)
            found.append(e.select(wraps, e.index(0), after))
            carry = e.convert("zext", wraps, "i64")
        return [e.add(place[0], carry), *found[::-1]]

    def _address(self, base: Register, place: Sequence[Register]) -> Register:
        for index, stride in zip(place, self.strides, strict=True):
            base = self.e.offset(base, self.e.mul(index, stride))
        return base
