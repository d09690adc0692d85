"""Binary max-heaps of integers in memory: item `i` is not less than its children `2*i + 1` and `2*i + 2`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.emitter import Emitter, Kind, Register


class Heap:
    """Emits the operations of a heap of `size` integers at `base`; `size` is at least 1."""

    def __init__(self, e: Emitter, base: Register, kind: Kind, size: Register) -> None:
        self.e, self.kind, self.size = e, kind, size
        self._base = base

    def address(self, place: Register) -> Register:
        """Emit the address of the item with index `place`."""
        return self.e.offset(self._base, place, self.kind.scalar)

    def load(self, place: Register) -> Register:
        """Emit the load of an item."""
        return self.e.load(self.address(place), self.kind, align=8)

    def store(self, x: Register, place: Register) -> None:
        """Emit the store of an item."""
        self.e.store(x, self.address(place), align=8)

    @property
    def greatest(self) -> Register:
        """The first item."""
        return self.load(self.e.index(0))

    def sink(self, x: Register, start: Register, size: Register) -> None:
        """Emit the insertion of `x` at index `start` or below: it sinks while a child is greater."""
        e = self.e
        hole, last = e.variable(start), e.add(size, -1)

        def step() -> Register:
            place = e.get(hole)
            left = e.add(e.mul(place, 2), 1)
            inside = e.compare("icmp sle", left, last)
            left, right = e.least(left, last), e.least(e.add(left, 1), last)
            a, b = self.load(left), self.load(right)
            is_right = e.compare("icmp sgt", b, a)
            below = e.select(is_right, b, a)
            moves = e.binary("and", inside, e.compare("icmp sgt", below, x))
            self.store(e.select(moves, below, x), place)
            e.assign(hole, e.select(moves, e.select(is_right, right, left), place))
            return moves

        e.repeat(step)

    def build(self) -> None:
        """Emit the conversion of unordered items to a heap."""
        e = self.e
        half = e.binary("udiv", self.size, e.index(2))
        with e.loop(e.index(0), half) as turn:
            place = e.binary("sub", e.add(half, -1), turn)
            self.sink(self.load(place), place, self.size)

    def sort(self) -> None:
        """Emit the sort of a heap in ascending order."""
        e = self.e
        with e.loop(e.index(1), self.size) as turn:
            last = e.binary("sub", self.size, turn)
            x, greatest = self.load(last), self.greatest
            self.store(greatest, last)
            self.sink(x, e.index(0), last)
