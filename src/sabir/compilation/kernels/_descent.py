"""Rows that descend decision trees: some rows together down one tree, or one row down some trees.

A lane is a row in a tree. All lanes take a step at a time, without a branch: at a leaf a step stays. So the
loads of many lanes are under way together, which hides their latency. The values of the leaves are added row
by row in the order of the trees, so the bits do not depend on which lanes descend together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.kernels._body import element_bytes, function_of, kind_of, pointer_at
from sabir.compilation.kernels._emitter import BOOL, INDEX, Emitter, Kind, Register
from sabir.compilation.kernels._jobs import lanes_before

if TYPE_CHECKING:
    from sabir.compilation.kernels._emitter import Variable

_COMBINE = {"sum": ("fadd", 0.0), "min": ("min", float("inf")), "max": ("max", -float("inf"))}
_DOUBLE = Kind("double")
_WORD = 4  # bytes of the places of trees and votes


@dataclass(frozen=True, slots=True)
class Descent:
    """Trees whose nodes are pairs of integers of type `element`; `op` combines the weights of leaves.

    A leaf has one weight or, with `votes`, any number of weights and their targets. As many `vectors` of
    `lanes` take a step together.

    The arguments are the numbers of rows, targets and trees, how many rows one job leads at most, the elements
    between two rows, the bits of a feature, the bytes between the places where trees begin and their sure
    steps; then a buffer and an offset each of the features, the nodes, the trees, the weights, the results,
    and with `votes` of their first places and their targets.
    """

    element: str
    weight: str
    op: str
    votes: bool
    lanes: int
    vectors: int

    @property
    def together(self) -> int:
        """How many lanes take a step together."""
        return self.lanes * self.vectors

    def __str__(self) -> str:
        leaves = "votes" if self.votes else "weights"
        shape = f"{self.vectors} vectors of {self.lanes} lanes"
        return f"{self.op} of {leaves} ({self.weight}) of trees ({self.element}), {shape}"


def descent_text(descent: Descent) -> str:
    """Return the LLVM module of a descent."""
    return _Emission(descent).text()


class _Emission:
    def __init__(self, descent: Descent) -> None:
        self.spec, self.e = descent, Emitter()
        e = self.e
        self.kind = kind_of(descent.element, descent.lanes)
        self.rows, self.targets, self.trees, self.most, self.row, self.bits, self.steps = (
            e.argument(place) for place in range(7)
        )
        self.x, self.nodes, self.roots, self.weights, self.scores = (
            pointer_at(e, place) for place in range(7, 17, 2)
        )
        self.first, self.voted = (
            (pointer_at(e, place) for place in (17, 19)) if descent.votes else (self.x, self.x)
        )
        bits = self._narrow(self.bits)
        self.shift = e.splat(bits, descent.lanes)
        one = e.constant(bits.kind, 1)
        self.mask = e.splat(e.binary("sub", e.binary("shl", one, bits), one), descent.lanes)
        self.thresholds = self.nodes
        self.links = e.offset(self.nodes, e.index(element_bytes(descent.element)))
        self.reached = e.stack(descent.together * element_bytes(descent.element))

    def text(self) -> str:
        """Emit both ways; that with fewer steps of all lanes is taken."""
        e, width = self.e, self.spec.together
        down_one = e.mul(self._parts(self.rows, width), self.trees)
        down_some = e.mul(self._parts(self.trees, width), self.rows)
        by_rows = e.compare("icmp sle", down_one, down_some)
        with e.when(by_rows):
            self._all_rows()
        with e.when(e.binary("xor", by_rows, e.constant(BOOL, 1))):
            self._each_row()
        return e.text()

    def _parts(self, count: Register, width: int) -> Register:
        return self.e.binary("sdiv", self.e.add(count, width - 1), self.e.index(width))

    def _narrow(self, x: Register) -> Register:
        return x if self.kind.bits == INDEX.bits else self.e.convert("trunc", x, self.kind.scalar)

    # ------------------------------------------------------------ steps

    def _step(self, places: list[Variable], rows: list[Register], base: Register) -> list[Register]:
        """Emit a step of all lanes; return for each vector which lanes have moved."""
        e, moved = self.e, list[Register]()
        now = [e.get(place) for place in places]
        for place, at, row in zip(places, now, rows, strict=True):
            pair = f"[2 x {self.kind.scalar}]"
            link = self._gathered(self.links, at, pair)
            feature = e.binary("and", link, self.mask)
            x = self._gathered(base, e.binary("add", feature, row), self.kind.scalar)
            greater = e.compare("icmp sgt", x, self._gathered(self.thresholds, at, pair))
            after = e.binary("lshr", link, self.shift)
            after = e.binary("add", after, e.convert("zext", greater, self.kind.scalar))
            e.assign(place, after)
            moved.append(e.compare("icmp ne", after, at))
        return moved

    def _gathered(self, base: Register, at: Register, item: str, kind: Kind | None = None) -> Register:
        """Emit loads of integers at lanes of places."""
        e, kind = self.e, kind or self.kind
        address = e.value(Kind("ptr", at.kind.lanes), f"getelementptr {item}, {base}, {at}")
        return e.load(address, kind) if kind.lanes == 1 else e.gather(address, kind, None)

    def _descend(self, places: list[Variable], rows: list[Register], base: Register) -> None:
        """Emit steps until no lane moves."""
        e = self.e

        def step() -> Register:
            first, *others = self._step(places, rows, base)
            for other in others:
                first = e.binary("or", first, other)
            return e.any(first)

        e.repeat(step)

    def _numbers(self) -> Register:
        numbers = ", ".join(f"{self.kind.scalar} {n}" for n in range(self.spec.lanes))
        return Register(f"<{numbers}>" if self.spec.lanes > 1 else "0", self.kind)

    # ------------------------------------------------------------ some rows down one tree

    def _all_rows(self) -> None:
        """Emit blocks of rows, each down all trees: a tree stays in the cache for the rows of a block."""
        e, width = self.e, self.spec.together
        a_thread = self._parts(self.rows, width)
        a_thread = e.binary("sdiv", a_thread, Register("%threads", INDEX))
        block = e.least(e.mul(e.add(a_thread, 1), width), self.most)
        blocks = e.binary("sdiv", e.add(e.add(self.rows, block), -1), block)
        low, high = e.share(blocks)
        with e.loop(low, high) as number:
            start = e.mul(number, block)
            stop = e.least(e.add(start, block), self.rows)
            self._clear(e.mul(start, self.targets), e.mul(stop, self.targets))
            base = e.offset(self.x, e.mul(start, self.row), self.kind.scalar)
            with e.loop(e.index(0), self.trees) as tree, e.loop(start, stop, width) as row:
                self._rows(tree, row, start, stop, base)

    def _rows(self, tree: Register, row: Register, start: Register, stop: Register, base: Register) -> None:
        e, spec = self.e, self.spec
        root = e.load(e.offset(self.roots, tree, "i32"), Kind("i32"))
        steps = e.load(e.offset(e.offset(self.roots, self.steps), tree, "i32"), Kind("i32"))
        root = root if self.kind.bits == root.kind.bits else e.convert("zext", root, self.kind.scalar)
        last = e.splat(self._narrow(e.add(e.binary("sub", stop, start), -1)), spec.lanes)
        stride = e.splat(self._narrow(self.row), spec.lanes)
        places: list[Variable] = []
        rows: list[Register] = []
        for number in range(spec.vectors):
            place = self._narrow(e.add(e.binary("sub", row, start), number * spec.lanes))
            numbers = e.binary("add", e.splat(place, spec.lanes), self._numbers())
            numbers = e.select(e.compare("icmp slt", numbers, last), numbers, last)
            rows.append(e.binary("mul", numbers, stride))
            places.append(e.variable(e.splat(root, spec.lanes)))
        sure = e.convert("zext", e.binary("lshr", steps, e.constant(steps.kind, 1)), "i64")
        with e.loop(e.index(0), sure):
            self._step(places, rows, base)
        with e.when(e.compare("icmp ne", e.binary("and", steps, e.constant(steps.kind, 1)), e.constant(steps.kind, 0))):
            self._descend(places, rows, base)
        if spec.votes:
            self._keep(places)
            with e.loop(e.index(0), e.least(e.binary("sub", stop, row), e.index(spec.together))) as lane:
                self._vote(self._kept(lane), e.add(row, lane))
            return
        for number, place in enumerate(places):
            self._add(e.get(place), e.add(row, number * spec.lanes), stop)

    def _add(self, places: Register, row: Register, stop: Register) -> None:
        """Emit the weights of the leaves that lanes have reached, combined with the results of their rows."""
        e, lanes = self.e, self.spec.lanes
        scalar = kind_of(self.spec.weight)
        weights = self._gathered(self.weights, places, scalar.scalar, scalar._replace(lanes=lanes))
        address = e.offset(self.scores, row, "double")
        mask = lanes_before(e, row, stop, lanes) if lanes > 1 else None
        total = e.load(address, _DOUBLE._replace(lanes=lanes), mask)
        total = self._combined(total, self._wide(weights))
        e.store(total, address, mask)

    # ------------------------------------------------------------ one row down some trees

    def _each_row(self) -> None:
        e, spec = self.e, self.spec
        low, high = e.share(self.rows)
        with e.loop(low, high) as row:
            self._clear(e.mul(row, self.targets), e.mul(e.add(row, 1), self.targets))
            base = e.offset(self.x, e.mul(row, self.row), self.kind.scalar)
            zero = e.constant(self.kind, 0)
            with e.loop(e.index(0), self.trees, spec.together) as tree:
                places: list[Variable] = []
                for number in range(spec.vectors):
                    address = e.offset(self.roots, e.add(tree, number * spec.lanes), "i32")
                    roots = e.load(address, Kind("i32", spec.lanes))
                    wider = roots.kind.bits < self.kind.bits
                    places.append(e.variable(e.convert("zext", roots, self.kind.scalar) if wider else roots))
                self._descend(places, [zero] * spec.vectors, base)
                self._keep(places)
                count = e.least(e.binary("sub", self.trees, tree), e.index(spec.together))
                with e.loop(e.index(0), count) as lane:
                    if spec.votes:
                        self._vote(self._kept(lane), row)
                    else:
                        self._combine(e.offset(self.scores, row, "double"), self._kept(lane))

    # ------------------------------------------------------------ leaves

    def _clear(self, start: Register, stop: Register) -> None:
        """Emit the first value of some results."""
        e, neutral = self.e, self.e.constant(_DOUBLE, _COMBINE[self.spec.op][1])
        with e.loop(start, stop) as place:
            e.store(neutral, e.offset(self.scores, place, "double"))

    def _keep(self, places: list[Variable]) -> None:
        e, spec = self.e, self.spec
        for number, place in enumerate(places):
            first = e.index(number * spec.lanes)
            e.store(e.get(place), e.offset(self.reached, first, self.kind.scalar))

    def _kept(self, lane: Register) -> Register:
        """Emit the place that a lane has reached."""
        e, scalar = self.e, Kind(self.kind.scalar)
        place = e.load(e.offset(self.reached, lane, scalar.scalar), scalar)
        return place if scalar == INDEX else e.convert("zext", place, "i64")

    def _vote(self, place: Register, row: Register) -> None:
        """Emit the votes of a leaf in their order."""
        e, own = self.e, self.e.mul(row, self.targets)
        start, stop = (self._word(self.first, e.add(place, more)) for more in (0, 1))
        with e.loop(start, stop) as vote:
            cell = e.add(own, self._word(self.voted, vote))
            self._combine(e.offset(self.scores, cell, "double"), vote)

    def _word(self, base: Register, place: Register) -> Register:
        return self.e.convert("zext", self.e.load(self.e.offset(base, place, "i32"), Kind("i32")), "i64")

    def _combine(self, address: Register, place: Register) -> None:
        e, kind = self.e, kind_of(self.spec.weight)
        weight = e.load(e.offset(self.weights, place, kind.scalar), kind)
        e.store(self._combined(e.load(address, _DOUBLE), self._wide(weight)), address)

    def _wide(self, x: Register) -> Register:
        return x if x.kind.scalar == "double" else self.e.convert("fpext", x, "double")

    def _combined(self, total: Register, weight: Register) -> Register:
        op = _COMBINE[self.spec.op][0]
        if op == "fadd":
            return self.e.binary(op, total, weight)
        return function_of(op, "double")(self.e, (total, weight))
