"""Sums over a long `k`: after `PART_STEPS` of them the sums of a tile are added to totals, and begin anew.

Each addition to a sum of floats rounds by as much as the sum so far is large, so the error of one sum grows
with its length. The sums of parts are smaller, and there are few of them. The parts are the same ones in
every kernel of a product, counted from its first `k`: a row has the same bits in each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.products.spec import PART_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register, Variable


class End(NamedTuple):
    """What happens after some `k`: whether totals are added to the sums, and whether a part ends."""

    adds: Register
    restarts: Register

    @classmethod
    def after(cls, e: Emitter, done: Register, depth: Register) -> End:
        """Emit what happens after so many `k`, of which there are `depth`."""
        left = e.binary("and", done, e.index(PART_STEPS - 1))
        is_full = e.compare("icmp eq", left, e.index(0))
        is_last = e.compare("icmp eq", done, depth)
        has_totals = e.compare("icmp sgt", done, e.index(PART_STEPS))
        goes_on = e.binary("xor", is_last, e.constant(is_last.kind, 1))
        ends = e.binary("or", is_full, is_last)
        return cls(e.binary("and", ends, has_totals), e.binary("and", is_full, goes_on))


class Totals(NamedTuple):
    """The sums of a tile, and the address of their totals in memory."""

    e: Emitter
    sums: Sequence[Variable]
    address: Register

    def in_parts(
        self, start: Register, count: Register, depth: Register, add: Callable[[Register, Register], None]
    ) -> None:
        """Emit the additions of `count` of all `depth` `k`, of which the first has the number `start`.

        `add` emits those from a number before `count` to another one.
        """
        e = self.e
        place = e.variable(e.index(0))

        def part() -> Register:
            first = e.get(place)
            done = e.binary("and", e.add(start, first), e.index(PART_STEPS - 1))
            end = e.least(e.add(first, e.binary("sub", e.index(PART_STEPS), done)), count)
            add(first, end)
            self.at(End.after(e, e.add(start, end), depth))
            e.assign(place, end)
            return e.compare("icmp slt", end, count)

        e.repeat(part)

    def at(self, end: End) -> None:
        """Emit the end of a part, or of the sums."""
        e = self.e
        with e.when(end.adds, rarely=True):
            for slot, address in self._places():
                e.assign(slot, e.binary("fadd", e.load(address, slot.kind), e.get(slot)))
        with e.when(end.restarts, rarely=True):
            for slot, address in self._places():
                e.store(e.get(slot), address)
                e.assign(slot, e.constant(slot.kind, 0))

    def _places(self) -> list[tuple[Variable, Register]]:
        size = self.sums[0].kind.bits * self.sums[0].kind.lanes // 8
        return [
            (slot, self.e.offset(self.address, self.e.index(n * size))) for n, slot in enumerate(self.sums)
        ]
