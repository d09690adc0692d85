"""Cumulative sums and products along an axis, computed in the order of the index.

If another axis is contiguous, vectors are along that axis: each lane computes a different row, and the
accumulators of a strip are on the stack. Else several rows are computed together, which hides the latency of
the operation.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body, Point, function_of, kind_of
from sabir.compilation.backends.cpu.emit.emitter import Emitter
from sabir.compilation.backends.cpu.emit.jobs import along, at, decoded, product_of, strips
from sabir.compilation.plan.signature import KernelSignature, declared
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Register
    from sabir.compilation.backends.cpu.emit.nest import Nest

_ROWS = 4  # rows that a job computes together
_COLUMNS = 1024  # columns of a strip: each step along the axis reads another page of memory
_FUNCTIONS = {"sum": "add", "prod": "mul"}
_NEUTRAL = {"sum": 0, "prod": 1}  # the first exclusive result


@dataclass(frozen=True, slots=True)
class Cumulation:
    """The cumulative `op` of the values of a nest along its reduced axis.

    `exclusive` leaves out the element itself; `reverse` starts at the end of the axis.
    """

    nest: Nest
    op: str
    exclusive: bool
    reverse: bool

    @property
    def signature(self) -> KernelSignature:
        """The arguments: the arguments of the nest."""
        return declared(nest=self.nest.signature)

    def __str__(self) -> str:
        marks = f"{' exclusive' if self.exclusive else ''}{' reverse' if self.reverse else ''}"
        return f"running {self.op}{marks}\n{self.nest}"


def cumulation_text(cumulation: Cumulation) -> str:
    """Return the LLVM module of a cumulation."""
    body = Body(cumulation.nest, Arguments(Emitter(), cumulation.signature).group("nest"))
    emission = _CumulationEmitter(cumulation, body)
    if body.column:
        emission.columns()
    else:
        emission.rows()
    return body.e.text()


class _CumulationEmitter:
    def __init__(self, cumulation: Cumulation, body: Body) -> None:
        self.spec, self.body, self.e = cumulation, body, body.e
        nest = body.nest
        self.along = nest.reduced.index(True)
        self.kept = [axis for axis in range(nest.axes) if axis != self.along]
        ((self.target, self.step),) = nest.stores
        self.element = nest.steps[self.step].element

    def rows(self) -> None:
        e, body = self.e, self.body
        count = product_of(e, [body.sizes[axis] for axis in self.kept])
        low, high = e.share(e.binary("udiv", e.add(count, _ROWS - 1), e.index(_ROWS)))
        last = e.add(count, -1)
        with e.loop(low, high) as job:
            first = e.mul(job, _ROWS)
            # a partial job computes the last row several times
            numbers = [e.least(e.add(first, n), last) for n in range(_ROWS if self.kept else 1)]
            self._run([Point(decoded(body, number, self.kept)) for number in numbers])

    def columns(self) -> None:
        body = self.body
        outer = [axis for axis in self.kept if axis != body.nest.inner]
        with strips(body, outer, _COLUMNS) as (indices, start, stop):
            self._block(indices, start, stop)

    def _block(self, indices: list[Register], start: Register, stop: Register) -> None:
        """Emit the loops over a strip of columns, whose accumulators are on the stack."""
        e, inner, lanes = self.e, self.body.nest.inner, self.body.nest.lanes
        size = element_bytes(self.element)
        totals = e.stack(_COLUMNS * size)
        with e.loop(e.index(0), e.index(_COLUMNS), lanes) as place:
            e.store(self._start(lanes), e.offset(totals, e.mul(place, size)))
        with self._turns() as (turn, index):

            def add(point: Point) -> None:
                place = e.binary("sub", point.indices[inner], start)
                address = e.offset(totals, e.mul(place, size))
                before = e.load(address, kind_of(self.element, point.lanes))
                e.store(self._added(point, before, turn), address)

            along(self.body, Point(at(indices, self.along, index)), start, stop, add)

    def _run(self, rows: Sequence[Point]) -> None:
        """Emit the loop along the axis for several rows together."""
        e = self.e
        totals = [e.variable(self._start(1)) for _ in rows]
        with self._turns() as (turn, index):
            for row, slot in zip(rows, totals, strict=True):
                point = Point(at(row.indices, self.along, index))
                e.assign(slot, self._added(point, e.get(slot), turn))

    def _start(self, lanes: int) -> Register:
        """Return the neutral element: for a sum -0, because 0 + -0 is 0."""
        return self.e.constant(kind_of(self.element, lanes), -0.0 if self.spec.op == "sum" else 1)

    @contextlib.contextmanager
    def _turns(self) -> Generator[tuple[Register, Register]]:
        """Emit the loop along the axis; yield the iteration and the index, which may run in reverse."""
        e, size = self.e, self.body.sizes[self.along]
        with e.loop(e.index(0), size) as turn:
            yield turn, e.binary("sub", e.add(size, -1), turn) if self.spec.reverse else turn

    def _added(self, point: Point, before: Register, turn: Register) -> Register:
        """Emit the store of a result; return the accumulator including the value at the point."""
        e, spec = self.e, self.spec
        x = self.body.wide(self.step, point)
        after = found = function_of(_FUNCTIONS[spec.op], self.element)(e, (before, x))
        if spec.exclusive:
            is_first = e.compare("icmp eq", turn, e.index(0))
            found = e.select(is_first, e.constant(before.kind, _NEUTRAL[spec.op]), before)
        self.body.write(self.target, found, point)
        return after
