"""Running sums and products along an axis, each in the order of its index.

Where another axis lies side by side in memory, vectors lie along that one: each lane is a row of its
own. Else some rows are computed together, which hides the latency of the function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.kernels._body import Body, Point, function_of, kind_of
from sabir.compilation.kernels._emitter import Emitter
from sabir.compilation.kernels._jobs import at, decoded, mask_of, product_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.kernels._emitter import Register, Variable
    from sabir.compilation.kernels._nest import Nest

_ROWS = 4  # that one job computes together
_VECTORS = 4  # side by side that one job computes: whole lines of memory
_FUNCTIONS = {"sum": "add", "prod": "mul"}
_NEUTRAL = {"sum": 0, "prod": 1}  # the first exclusive result


@dataclass(frozen=True, slots=True)
class Cumulation:
    """The value that a nest stores, combined with those before it along the reduced axis."""

    nest: Nest
    op: str
    exclusive: bool
    reverse: bool

    def __str__(self) -> str:
        marks = f"{' exclusive' if self.exclusive else ''}{' reverse' if self.reverse else ''}"
        return f"running {self.op}{marks}\n{self.nest}"


def cumulation_text(cumulation: Cumulation) -> str:
    """Return the LLVM module of a cumulation; its arguments are those of the nest."""
    body = Body(Emitter(), cumulation.nest)
    emission = _Emission(cumulation, body)
    if body.column:
        emission.columns()
    else:
        emission.rows()
    return body.e.text()


class _Emission:
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
            # rows past the end repeat the last
            numbers = [e.least(e.add(first, n), last) for n in range(_ROWS if self.kept else 1)]
            self._run([Point(decoded(body, number, self.kept)) for number in numbers])

    def columns(self) -> None:
        e, body, inner = self.e, self.body, self.body.nest.inner
        lanes, outer = body.nest.lanes, [axis for axis in self.kept if axis != inner]
        width = lanes * _VECTORS
        blocks = e.binary("udiv", e.add(body.sizes[inner], width - 1), e.index(width))
        low, high = e.share(product_of(e, [*(body.sizes[axis] for axis in outer), blocks]))
        with e.loop(low, high) as job:
            indices = decoded(body, e.binary("udiv", job, blocks), outer)
            start = e.mul(e.binary("urem", job, blocks), width)
            places = [e.add(start, lanes * n) for n in range(_VECTORS)]
            self._run([
                Point(at(indices, inner, place), lanes, mask_of(body, place, body.sizes[inner]))
                for place in places
            ])

    def _run(self, rows: Sequence[Point]) -> None:
        """Emit the loop along the axis for some rows together."""
        e, size = self.e, self.body.sizes[self.along]
        kind = kind_of(self.element, rows[0].lanes)
        # -0 changes no sum, not even that of -0; 0 would
        start = -0.0 if self.spec.op == "sum" else 1
        totals = [e.variable(e.constant(kind, start)) for _ in rows]
        with e.loop(e.index(0), size) as turn:
            place = e.binary("sub", e.add(size, -1), turn) if self.spec.reverse else turn
            for row, slot in zip(rows, totals, strict=True):
                self._add(
                    Point(at(row.indices, self.along, place), row.lanes, row.mask, outer=row), slot, turn
                )

    def _add(self, point: Point, slot: Variable, turn: Register) -> None:
        e, spec = self.e, self.spec
        before = e.get(slot)
        x = self.body.wide(self.step, point)
        after = function_of(_FUNCTIONS[spec.op], self.element)(e, (before, x))
        e.assign(slot, after)
        if spec.exclusive:
            is_first = e.compare("icmp eq", turn, e.index(0))
            after = e.select(is_first, e.constant(before.kind, _NEUTRAL[spec.op]), before)
        self.body.write(self.target, after, point)
