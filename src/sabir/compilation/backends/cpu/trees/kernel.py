"""Decision trees: several rows descend one tree together, or one row descends several trees together.

A lane is one row in one tree; its node is in a scalar register. All lanes take each step together and without
a branch: the successor of a leaf is the leaf itself. So the loads of all lanes overlap, which hides their
latency; vector gathers are slower on many processors. The leaves of a row are combined in the order of the
trees, so the bits do not depend on which lanes descend together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import function_of, kind_of
from sabir.compilation.backends.cpu.emit.emitter import BOOL, INDEX, Emitter, Kind, Register
from sabir.compilation.plan.signature import SCRATCH_MEMORY, KernelSignature, declared, of_kind
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Variable

LANES = 8  # lanes that take a step together: their node indices fit in registers
_UNSURE = 2  # steps between two tests whether all lanes have reached leaves
_COMBINE = {"sum": ("fadd", 0.0), "min": ("min", float("inf")), "max": ("max", -float("inf"))}
_DOUBLE, _WORD = Kind("double"), Kind("i32")


@dataclass(frozen=True, slots=True)
class Descent:
    """Trees whose nodes are pairs of integers of type `element`; `op` combines the weights of leaves.

    A link has the number of its feature in its lowest `bits` bits. A leaf has one weight or, with `votes`,
    any number of weights, each with a target.
    """

    element: str
    weight: str
    op: str
    votes: bool
    bits: int

    @property
    def signature(self) -> KernelSignature:
        """The arguments; `first` and `voted` are null without `votes`.

        A job has at most `job_rows` rows; it copies their features to scratch memory. `step_bytes` is the
        offset from the roots to the number of steps of each tree before the first test for leaves.
        """
        sizes = of_kind("size", ("rows", "targets", "trees", "features", "job_rows"))
        tensors = ("x", "nodes", "roots", "weights", "scores", "first", "voted")
        return declared(**sizes, step_bytes="bytes", **of_kind("tensor", tensors), scratch=SCRATCH_MEMORY)

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
        arguments = Arguments(e, descent.signature)
        self.rows, self.targets = arguments.number("rows"), arguments.number("targets")
        self.trees, self.features = arguments.number("trees"), arguments.number("features")
        self.most, steps = arguments.number("job_rows"), arguments.number("step_bytes")
        self.x, self.nodes = arguments.pointer("x"), arguments.pointer("nodes")
        self.roots, self.weights = arguments.pointer("roots"), arguments.pointer("weights")
        self.scores = arguments.pointer("scores")
        self.first, self.voted = arguments.pointer("first"), arguments.pointer("voted")
        self.block = arguments.own_scratch()
        self.steps = e.offset(self.roots, steps)
        self.links = e.offset(self.nodes, e.index(element_bytes(descent.element)))
        self.reached = e.stack(LANES * INDEX.bits // 8)
        self.mask = e.constant(self.kind, (1 << descent.bits) - 1)

    def text(self) -> str:
        """Emit both loop orders, and the choice of the one with fewer groups of lanes."""
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
        """Emit steps until all lanes have reached leaves.

        `feature(lane, number)` emits the load of a feature of the row of a lane.
        """
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
        """Emit the load of one of the two integers of a node."""
        address = self.e.offset(base, place, f"[2 x {self.kind.scalar}]")
        return self.e.load(address, self.kind)

    def _index(self, x: Register) -> Register:
        return x if x.kind == INDEX else self.e.convert("zext", x, "i64")

    def _descending(self, places: Sequence[Variable]) -> Register:
        """Emit the test whether a lane is not at a leaf; the threshold of a leaf has all bits set."""
        e = self.e
        least, *others = (self._half(self.nodes, e.get(place)) for place in places)
        for threshold in others:
            least = e.binary("and", least, threshold)
        return e.compare("icmp ne", least, e.constant(self.kind, -1))

    # ------------------------------------------------------------ several rows, one tree

    def _blocks(self) -> None:
        """Emit the loops over blocks of rows, trees and rows: a tree stays in the cache for a block."""
        e = self.e
        a_share = e.binary("sdiv", self._groups(self.rows), Register("%shares", INDEX))
        size = e.least(e.mul(e.add(a_share, 1), LANES), self.most)
        blocks = e.binary("sdiv", e.add(e.add(self.rows, size), -1), size)
        low, high = e.share(blocks)
        with e.loop(low, high) as block:
            start = e.mul(block, size)
            stop = e.least(e.add(start, size), self.rows)
            self._clear(start, stop)
            self._copy_block(start, stop)
            with e.loop(e.index(0), self.trees) as tree, e.loop(start, stop, LANES) as row:
                self._rows(tree, row, start, stop)

    def _copy_block(self, start: Register, stop: Register) -> None:
        """Emit the copy of a block to scratch memory: `[rows / LANES][features][LANES]`.

        The last group repeats the last row.
        """
        e, last = self.e, self.e.add(stop, -1)
        with e.loop(start, stop, LANES) as row:
            group = self._group_of(row, start)
            rows = [e.least(e.add(row, lane), last) for lane in range(LANES)]
            sources = [e.offset(self.x, e.mul(each, self.features), self.kind.scalar) for each in rows]
            with e.loop(e.index(0), self.features) as feature:
                target = e.offset(group, e.mul(feature, LANES), self.kind.scalar)
                for lane, source in enumerate(sources):
                    x = e.load(e.offset(source, feature, self.kind.scalar), self.kind)
                    e.store(x, e.offset(target, e.index(lane), self.kind.scalar))

    def _group_of(self, row: Register, start: Register) -> Register:
        e = self.e
        return e.offset(self.block, e.mul(e.binary("sub", row, start), self.features), self.kind.scalar)

    def _rows(self, tree: Register, row: Register, start: Register, stop: Register) -> None:
        e, group = self.e, self._group_of(row, start)

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

    # ------------------------------------------------------------ one row, several trees

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
        """Emit the initialization of the scores of some rows to the neutral element."""
        e, neutral = self.e, self.e.constant(_DOUBLE, _COMBINE[self.spec.op][1])
        with e.loop(e.mul(start, self.targets), e.mul(stop, self.targets)) as place:
            e.store(neutral, e.offset(self.scores, place, "double"))

    def _keep(self, places: Sequence[Variable]) -> None:
        for lane, place in enumerate(places):
            self.e.store(self.e.get(place), self.e.offset(self.reached, self.e.index(lane), "i64"))

    def _leaf(self, lane: Register, row: Register) -> None:
        """Emit the combination of the weights of a lane's leaf with the scores of a row."""
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
