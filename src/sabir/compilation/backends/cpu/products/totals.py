"""Sums over a long `k` in parts: every `PART_STEPS` steps, accumulators are added to totals and set to 0.

The rounding error of an addition of floats is proportional to the sum, so the error of a sum grows with its
length. The sums of parts are smaller, and there are few of them. Parts begin at the same steps of `k` in
every kernel of products, so a row has the same bits in all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.products.spec import PART_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register, Variable


class End(NamedTuple):
    """Conditions after a step of `k`: `adds`, to add totals to accumulators; `restarts`, to begin a part.

    At the end of the first part there are no totals to add, and the last part does not restart.
    """

    adds: Register
    restarts: Register

    @classmethod
    def after(cls, e: Emitter, done: Register, depth: Register) -> End:
        """Emit the conditions after `done` of `depth` steps of `k`."""
        left = e.binary("and", done, e.index(PART_STEPS - 1))
        is_full = e.compare("icmp eq", left, e.index(0))
        is_last = e.compare("icmp eq", done, depth)
        has_totals = e.compare("icmp sgt", done, e.index(PART_STEPS))
        goes_on = e.binary("xor", is_last, e.constant(is_last.kind, 1))
        ends = e.binary("or", is_full, is_last)
        return cls(e.binary("and", ends, has_totals), e.binary("and", is_full, goes_on))


class Totals(NamedTuple):
    """The accumulators of a tile, and the address of their totals in memory."""

    e: Emitter
    sums: Sequence[Variable]
    address: Register

    def in_parts(
        self, start: Register, count: Register, depth: Register, add: Callable[[Register, Register], None]
    ) -> None:
        """Emit the additions of `count` steps of `k`, from step `start` of `depth`, with the ends of parts.

        `add(first, end)` emits a range of these steps, counted from `start`.
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
        """Emit the end of a part: add the totals, then store the sums as totals and set accumulators to 0."""
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
