"""The epilogue of a tile of a product: the fused maps, computed on the accumulators, and the stores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.body import Body, Point, kind_of
from sabir.compilation.backends.cpu.emit.functions import LONG
from sabir.compilation.backends.cpu.emit.jobs import lanes_before
from sabir.compilation.backends.cpu.emit.nest import Accumulated, Apply
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Register, Variable
    from sabir.compilation.backends.cpu.products.spec import Product
    from sabir.compilation.backends.cpu.products.tile_rows import Rows

_SHORT = 6  # functions of an epilogue that may be emitted for each row


class Job(NamedTuple):
    """A job of a product: the rows `first` to `last` of an item of the batch, and the first column."""

    batch: list[Register]
    first: Register
    last: Register
    column: Register


class Vector(NamedTuple):
    """The first column of a vector of accumulators, and its mask if the last vector may be partial."""

    column: Register
    mask: Register | None


class Results:
    """Emits the maps of one vector of accumulators, and stores them; if `whole`, no vector is partial."""

    def __init__(self, body: Body, columns: Register, *, whole: bool) -> None:
        self.e, self.body, self.columns, self.whole = body.e, body, columns, whole
        self.fixed = Point([])

    def begin(self) -> None:
        """Emit the values that all vectors share."""
        self.fixed = self.body.fixed()

    def vectors(self, first: Register, count: int) -> list[Vector]:
        """Emit the columns and masks of `count` vectors from a column on; all rows share them."""
        e, lanes = self.e, self.body.nest.lanes
        columns = [e.add(first, v * lanes) for v in range(count)]
        if self.whole:
            return [Vector(column, None) for column in columns]
        return [Vector(column, lanes_before(e, column, self.columns, lanes)) for column in columns]

    def store(self, indices: list[Register], vector: Vector, x: Register) -> None:
        """Emit the results of a vector of accumulators in the row at `indices`."""
        nest = self.body.nest
        point = Point([*indices, vector.column], nest.lanes, vector.mask, outer=self.fixed)
        for number, step in enumerate(nest.steps):
            if isinstance(step, Accumulated):
                point.values[number] = x
        for access, number in nest.stores:
            self.body.write(access, self.body.value(number, point), point)


class Epilogue:
    """Emits the epilogue of a tile; `columns` is the number of its columns."""

    def __init__(self, body: Body, product: Product, columns: Register) -> None:
        self.e, self.product = body.e, product
        self.results = Results(body, columns, whole=product.whole)
        self.vectors = product.panels * product.vectors
        self.vector = kind_of(product.element, product.nest.lanes)
        # with several axes of `k`, adjacent stores of sums can make LLVM hoist loads too far in the loop
        # over the last one: it then runs out of registers, and a convolution took 1.17 times as long
        self._loops = product.rows > 1 and (product.depth_axes == 1 or _is_long(product))

    def emit(self, job: Job, rows: Rows, sums: Sequence[Sequence[Variable]]) -> None:
        """Emit the results of the rows of a tile: a long epilogue in a loop, with the sums on the stack.

        Unrolled over the rows, it would be half of the code of a tile, and no faster.
        """
        e, count = self.e, self.vectors
        # here, not before the loops, where they would occupy registers of accumulators
        self.results.begin()
        vectors = self.results.vectors(job.column, count)
        if not self._loops:
            for m, (row, place) in enumerate(zip(sums, rows.places, strict=True)):
                with e.when(e.compare("icmp slt", e.add(rows.first, m), job.last)):
                    self._store([*job.batch, *place], vectors, [e.get(slot) for slot in row])
            return
        size = self.vector.lanes * element_bytes(self.product.element)
        tile = e.stack(len(sums) * count * size)
        for number, slot in enumerate(slot for row in sums for slot in row):
            e.store(e.get(slot), e.offset(tile, e.index(number * size)), align=size)
        table = rows.kept(e)
        present = e.least(e.index(len(sums)), e.binary("sub", job.last, rows.first))
        with e.loop(e.index(0), present) as m:
            line = e.offset(tile, e.mul(m, count * size))
            places = [e.offset(line, e.index(v * size)) for v in range(count)]
            row_sums = [e.load(place, self.vector, align=size) for place in places]
            self._store([*job.batch, *rows.indices(e, table, m)], vectors, row_sums)

    def _store(self, indices: list[Register], vectors: Sequence[Vector], sums: Sequence[Register]) -> None:
        """Emit the results of a row, with its vectors interleaved, as the steps of one are a chain."""
        store = self.results.store
        self.e.interleave(partial(store, indices, vector, x) for vector, x in zip(vectors, sums, strict=True))


def _is_long(product: Product) -> bool:
    """Return whether the epilogue is much code."""
    applied = [step.op for step in product.nest.steps if isinstance(step, Apply)]
    return len(applied) > _SHORT or not LONG.isdisjoint(applied)
