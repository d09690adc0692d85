"""The results of a tile of a product: the maps behind it, computed on the sums and stored."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.kernels._body import Body, Point, element_bytes, kind_of
from sabir.compilation.kernels._emitter import INDEX, Register, Variable
from sabir.compilation.kernels._functions import LONG
from sabir.compilation.kernels._jobs import lanes_before
from sabir.compilation.kernels._nest import Accumulated, Apply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.kernels._product_spec import Product

_UNROLLED = 6  # steps of an epilogue that is emitted for each vector of a tile


class Job(NamedTuple):
    """The rows `first` to `last` of an item of the batch, and the first of the columns."""

    batch: list[Register]
    first: Register
    last: Register
    column: Register


class Results:
    """Emits the maps behind one vector of sums, and stores them; in a `whole` one no vector has a rest."""

    def __init__(self, body: Body, columns: Register, *, whole: bool) -> None:
        self.e, self.body, self.columns, self.whole = body.e, body, columns, whole
        self.fixed = Point([])

    def begin(self) -> None:
        """Emit what is the same for all vectors to come."""
        self.fixed = self.body.fixed()

    def store(self, indices: list[Register], column: Register, x: Register) -> None:
        """Emit the results of the columns from one on, of the row with some indices."""
        e, nest, lanes = self.e, self.body.nest, self.body.nest.lanes
        mask = None if self.whole else lanes_before(e, column, self.columns, lanes)
        point = Point([*indices, column], lanes, mask, outer=self.fixed)
        for number, step in enumerate(nest.steps):
            if isinstance(step, Accumulated):
                point.values[number] = x
        for access, number in nest.stores:
            self.body.write(access, self.body.value(number, point), point)


class Epilogue:
    """Emits what follows the sums of a tile; `columns` is how many there are."""

    def __init__(self, body: Body, product: Product, columns: Register) -> None:
        self.e, self.product = body.e, product
        self.results = Results(body, columns, whole=product.whole)
        self.vectors = product.panels * product.vectors
        self.vector = kind_of(product.element, product.nest.lanes)

    def emit(
        self, job: Job, row: Register, sums: list[list[Variable]], places: Sequence[list[Register]]
    ) -> None:
        """Emit the results of the rows from `row` on; `places` has the indices of each."""
        e, product = self.e, self.product
        # here and not before the loops, where they would take the registers of sums
        self.results.begin()
        if product.rows > 1 and self._is_long():
            self._looped(job, row, sums, places)
            return
        for m in range(product.rows):
            here = e.add(row, m)
            with e.when(e.compare("icmp slt", here, job.last)):
                place = places[m] if product.row_axes > 1 else [here]
                self._store([*job.batch, *place], job.column, [e.get(x) for x in sums[m]])

    def _is_long(self) -> bool:
        applied = [step.op for step in self.product.nest.steps if isinstance(step, Apply)]
        return len(applied) > _UNROLLED or not LONG.isdisjoint(applied)

    def _looped(
        self, job: Job, row: Register, sums: list[list[Variable]], places: Sequence[list[Register]]
    ) -> None:
        """Emit a long epilogue for one row, in a loop over the rows of the tile, which wait on the stack."""
        e, product = self.e, self.product
        lanes, count, axes = product.nest.lanes, self.vectors, product.row_axes
        size = lanes * element_bytes(product.element)
        tile, table = e.stack(product.rows * count * size), e.stack(product.rows * axes * 8)
        for m, (accumulators, place) in enumerate(zip(sums, places, strict=True)):
            for v, slot in enumerate(accumulators):
                e.store(e.get(slot), e.offset(tile, e.index((m * count + v) * size)), align=size)
            for axis, index in enumerate(place):
                e.store(index, e.offset(table, e.index((m * axes + axis) * 8)))
        rows = e.least(e.index(product.rows), e.binary("sub", job.last, row))
        with e.loop(e.index(0), rows) as m:
            own = e.offset(table, e.mul(m, axes * 8))
            here = [e.load(e.offset(own, e.index(axis * 8)), INDEX) for axis in range(axes)]
            line = e.offset(tile, e.mul(m, count * size))
            row_sums = [
                e.load(e.offset(line, e.index(v * size)), self.vector, align=size) for v in range(count)
            ]
            self._store([*job.batch, *here], job.column, row_sums)

    def _store(self, indices: list[Register], column: Register, sums: Sequence[Register]) -> None:
        """Emit the results of a row from a column on: the steps of one vector wait for each other."""
        e, lanes = self.e, self.product.nest.lanes
        columns = [e.add(column, v * lanes) for v in range(self.vectors)]
        store = self.results.store
        e.in_turns(partial(store, indices, *vector) for vector in zip(columns, sums, strict=True))
