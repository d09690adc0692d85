"""Rows that descend decision trees: some rows together down one tree, or one row down some trees.

A lane is a row in a tree. All lanes take a step at a time, without a branch: at a leaf a step stays. So the
loads of many lanes are under way together, which hides their latency; gathers of vectors are slower on many
processors. The leaves are added row by row in the order of the trees, so the bits do not depend on which
lanes descend together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.body import function_of, kind_of, pointer_at
from sabir.compilation.backends.cpu.emit.emitter import BOOL, INDEX, Emitter, Kind, Register
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Variable

LANES = 8  # that take a step together: their places fit in registers
_UNSURE = 2  # steps between two questions whether all lanes have reached leaves
_COMBINE = {"sum": ("fadd", 0.0), "min": ("min", float("inf")), "max": ("max", -float("inf"))}
_DOUBLE, _WORD = Kind("double"), Kind("i32")


@dataclass(frozen=True, slots=True)
class Descent:
    """Trees whose nodes are pairs of integers of type `element`; `op` combines the weights of leaves.

    A feature has so many `bits`. A leaf has one weight or, with `votes`, any number of weights and targets.

    The arguments are the numbers of rows, targets, trees and features, how many rows one job leads at most,
    and the bytes between the places where trees begin and their sure steps; then a buffer and an offset each
    of the features, the nodes, the trees, the weights, the results, and of the first places of votes and
    their targets, and the scratch memory with its bytes for each thread, where a job lays its rows.
    """

    element: str
    weight: str
    op: str
    votes: bool
    bits: int

    def __str__(self) -> str:
        leaves = "votes" if self.votes else "weights"
        return (
            f"{self.op} of {leaves} ({self.weight}) of trees ({self.element}), {self.bits} bits of a feature"
        )


def descent_text(descent: Descent) -> str:
    """Return the LLVM module of a descent."""
    return _TreesEmitter(descent).text()


class _TreesEmitter:
    def __init__(self, descent: Descent) -> None:
        self.spec, self.e = descent, Emitter()
        e = self.e
        self.kind = kind_of(descent.element)
        self.rows, self.targets, self.trees, self.features, self.most, steps = map(e.argument, range(6))
        pointers = [pointer_at(e, place) for place in range(6, 22, 2)]
        self.x, self.nodes, self.roots, self.weights, self.scores, self.first, self.voted, scratch = pointers
        self.steps = e.offset(self.roots, steps)
        self.links = e.offset(self.nodes, e.index(element_bytes(descent.element)))
        self.lain = e.offset(scratch, e.mul(Register("%thread", INDEX), e.argument(22)))
        self.reached = e.stack(LANES * INDEX.bits // 8)
        self.mask = e.constant(self.kind, (1 << descent.bits) - 1)

    def text(self) -> str:
        """Emit both ways; that with fewer steps of all lanes is taken."""
        e = self.e
        down_one = e.mul(self._groups(self.rows), self.trees)
        down_some = e.mul(self._groups(self.trees), self.rows)
        by_rows = e.compare("icmp sle", down_one, down_some)
        with e.when(by_rows):
            self._blocks()
        with e.when(e.binary("xor", by_rows, e.constant(BOOL, 1))):
            self._single_rows()
        return e.text()

    def _groups(self, count: Register) -> Register:
        return self.e.binary("sdiv", self.e.add(count, LANES - 1), self.e.index(LANES))

    # ------------------------------------------------------------ steps

    def _descend(self, places: Sequence[Variable], feature: Callable[[int, Register], Register]) -> None:
        """Emit steps until all lanes have reached leaves; `feature` emits what a lane compares by a link."""
        e = self.e

        def steps() -> Register:
            for _ in range(_UNSURE):
                self._step(places, feature)
            return self._descending(places)

        with e.when(self._descending(places)):
            e.repeat(steps)

    def _step(self, places: Sequence[Variable], feature: Callable[[int, Register], Register]) -> None:
        e = self.e
        for lane, place in enumerate(places):
            at = e.get(place)
            link = self._half(self.links, at)
            x = feature(lane, e.binary("and", link, self.mask))
            greater = e.compare("icmp ult", self._half(self.nodes, at), x)
            after = e.binary("lshr", link, e.constant(self.kind, self.spec.bits))
            after = e.binary("add", after, e.convert("zext", greater, self.kind.scalar))
            e.assign(place, self._index(after))

    def _half(self, base: Register, place: Register) -> Register:
        """Emit one of the two integers of a node."""
        address = self.e.offset(base, place, f"[2 x {self.kind.scalar}]")
        return self.e.load(address, self.kind)

    def _index(self, x: Register) -> Register:
        return x if x.kind == INDEX else self.e.convert("zext", x, "i64")

    def _descending(self, places: Sequence[Variable]) -> Register:
        """Emit whether a lane is at no leaf: those have the largest threshold."""
        e = self.e
        least, *others = (self._half(self.nodes, e.get(place)) for place in places)
        for threshold in others:
            least = e.binary("and", least, threshold)
        return e.compare("icmp ne", least, e.constant(self.kind, -1))

    # ------------------------------------------------------------ some rows down one tree

    def _blocks(self) -> None:
        """Emit blocks of rows, each down all trees: a tree stays in the cache for the rows of a block."""
        e = self.e
        a_share = e.binary("sdiv", self._groups(self.rows), Register("%shares", INDEX))
        size = e.least(e.mul(e.add(a_share, 1), LANES), self.most)
        blocks = e.binary("sdiv", e.add(e.add(self.rows, size), -1), size)
        low, high = e.share(blocks)
        with e.loop(low, high) as block:
            start = e.mul(block, size)
            stop = e.least(e.add(start, size), self.rows)
            self._clear(start, stop)
            self._lay(start, stop)
            with e.loop(e.index(0), self.trees) as tree, e.loop(start, stop, LANES) as row:
                self._rows(tree, row, start, stop)

    def _lay(self, start: Register, stop: Register) -> None:
        """Emit the features of a block in groups of rows, each feature of a group side by side.

        The last group repeats the last row.
        """
        e, last = self.e, self.e.add(stop, -1)
        with e.loop(start, stop, LANES) as row:
            group = self._laid(row, start)
            rows = [e.least(e.add(row, lane), last) for lane in range(LANES)]
            sources = [e.offset(self.x, e.mul(each, self.features), self.kind.scalar) for each in rows]
            with e.loop(e.index(0), self.features) as feature:
                target = e.offset(group, e.mul(feature, LANES), self.kind.scalar)
                for lane, source in enumerate(sources):
                    x = e.load(e.offset(source, feature, self.kind.scalar), self.kind)
                    e.store(x, e.offset(target, e.index(lane), self.kind.scalar))

    def _laid(self, row: Register, start: Register) -> Register:
        e = self.e
        return e.offset(self.lain, e.mul(e.binary("sub", row, start), self.features), self.kind.scalar)

    def _rows(self, tree: Register, row: Register, start: Register, stop: Register) -> None:
        e, group = self.e, self._laid(row, start)

        def feature(lane: int, number: Register) -> Register:
            address = e.offset(group, self._index(number), self.kind.scalar)
            return e.load(e.offset(address, e.index(lane), self.kind.scalar), self.kind)

        root = self._word(self.roots, tree)
        places = [e.variable(root) for _ in range(LANES)]
        with e.loop(e.index(0), self._word(self.steps, tree)):
            self._step(places, feature)
        self._descend(places, feature)
        self._keep(places)
        with e.loop(e.index(0), e.least(e.binary("sub", stop, row), e.index(LANES))) as lane:
            self._leaf(lane, e.add(row, lane))

    # ------------------------------------------------------------ one row down some trees

    def _single_rows(self) -> None:
        e = self.e
        low, high = e.share(self.rows)
        with e.loop(low, high) as row:
            self._clear(row, e.add(row, 1))
            source = e.offset(self.x, e.mul(row, self.features), self.kind.scalar)

            def feature(_: int, number: Register) -> Register:
                place = e.binary("lshr", number, e.constant(self.kind, LANES.bit_length() - 1))
                return e.load(e.offset(source, self._index(place), self.kind.scalar), self.kind)

            with e.loop(e.index(0), self.trees, LANES) as tree:
                places = [e.variable(self._word(self.roots, e.add(tree, lane))) for lane in range(LANES)]
                self._descend(places, feature)
                self._keep(places)
                with e.loop(e.index(0), e.least(e.binary("sub", self.trees, tree), e.index(LANES))) as lane:
                    self._leaf(lane, row)

    # ------------------------------------------------------------ leaves

    def _clear(self, start: Register, stop: Register) -> None:
        """Emit the first results of some rows."""
        e, neutral = self.e, self.e.constant(_DOUBLE, _COMBINE[self.spec.op][1])
        with e.loop(e.mul(start, self.targets), e.mul(stop, self.targets)) as place:
            e.store(neutral, e.offset(self.scores, place, "double"))

    def _keep(self, places: Sequence[Variable]) -> None:
        for lane, place in enumerate(places):
            self.e.store(self.e.get(place), self.e.offset(self.reached, self.e.index(lane), "i64"))

    def _leaf(self, lane: Register, row: Register) -> None:
        """Emit what the leaf of a lane gives to a row."""
        e = self.e
        place = e.load(e.offset(self.reached, lane, "i64"), INDEX)
        if not self.spec.votes:
            self._give(e.offset(self.scores, row, "double"), place)
            return
        start, stop = (self._word(self.first, e.add(place, more)) for more in (0, 1))
        own = e.mul(row, self.targets)
        with e.loop(start, stop) as vote:
            cell = e.add(own, self._word(self.voted, vote))
            self._give(e.offset(self.scores, cell, "double"), vote)

    def _word(self, base: Register, place: Register) -> Register:
        return self._index(self.e.load(self.e.offset(base, place, "i32"), _WORD))

    def _give(self, address: Register, place: Register) -> None:
        e, kind, op = self.e, kind_of(self.spec.weight), _COMBINE[self.spec.op][0]
        weight = e.load(e.offset(self.weights, place, kind.scalar), kind)
        weight = weight if kind == _DOUBLE else e.convert("fpext", weight, "double")
        total = e.load(address, _DOUBLE)
        combined = (
            e.binary(op, total, weight) if op == "fadd" else function_of(op, "double")(e, (total, weight))
        )
        e.store(combined, address)
