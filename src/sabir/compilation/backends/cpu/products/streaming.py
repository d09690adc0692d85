"""Products of few rows by a matrix `b` read in place, row by row, at the bandwidth of memory.

A job computes a strip: adjacent tiles of columns. Its loop nest is: blocks of `_STEPS` rows of `b`, then the
tiles of the strip, then the rows of the block. The accumulators of the tiles are in scratch memory between
blocks. So a row of `b` is read in long contiguous pieces, which the processor prefetches, and every sum runs
over `k` in the same order as in the other kernels of products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.body import kind_of
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Register
from sabir.compilation.backends.cpu.emit.jobs import lanes_before
from sabir.compilation.backends.cpu.products.totals import End, Totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.body import Body
    from sabir.compilation.backends.cpu.emit.emitter import Variable
    from sabir.compilation.backends.cpu.emit.epilogue import Epilogue, Job
    from sabir.compilation.backends.cpu.emit.terms import Floats, Integers
    from sabir.compilation.backends.cpu.products.spec import Product
    from sabir.compilation.backends.cpu.products.tile_rows import Rows

_STEPS = 8  # rows of a block: as many streams as processors prefetch at once


class Matrix(NamedTuple):
    """The number of rows of `b`, their stride in bytes, and the stride of `a` along `k` in bytes."""

    depth: Register
    row_bytes: Register
    step_bytes: Register | int


class Streams:
    """Emits the jobs of a streamed product."""

    def __init__(
        self, body: Body, product: Product, epilogue: Epilogue, terms: Floats | Integers, matrix: Matrix
    ) -> None:
        self.e, self.body, self.product, self.epilogue = body.e, body, product, epilogue
        self.terms, self.matrix, self.columns = terms, matrix, body.sizes[-1]
        self.lanes = product.nest.lanes
        self.vectors = product.panels * product.vectors
        self.vector = kind_of(product.element, self.lanes)
        self.line = self.lanes * terms.lane_bytes  # bytes of a vector
        self.tiles = self.strip = self.e.index(1)

    def strips(self, tiles: Register, batch: Register) -> Register:
        """Emit the number of strips of an item: about one a share in all, or more, to fit into the cache."""
        e, shares = self.e, Register("%shares", INDEX)
        each = e.binary("udiv", e.add(e.add(e.mul(tiles, batch), shares), -1), shares)
        each = e.least(each, e.index(self.product.streamed_tiles))
        self.tiles = tiles
        self.strip = e.select(e.compare("icmp sgt", each, e.index(1)), each, e.index(1))
        return e.binary("udiv", e.add(e.add(tiles, self.strip), -1), self.strip)

    def emit(self, job: Job, number: Register, b: Register, rows: Rows) -> None:
        """Emit the results of `rows` and the strip `number` of the matrix at `b`."""
        e, matrix = self.e, self.matrix
        left = e.mul(number, self.strip)
        count = e.least(e.binary("sub", self.tiles, left), self.strip)
        rows_of_matrix = e.greatest(matrix.depth, e.index(1))  # if `k` is empty, the sums are 0
        last = e.binary("udiv", e.add(rows_of_matrix, -1), e.index(_STEPS))
        with e.loop(e.index(0), e.add(last, 1)) as block:
            first = e.mul(block, _STEPS)
            start = e.offset(b, e.mul(first, matrix.row_bytes))
            factors = [e.offset(each, e.mul(first, matrix.step_bytes)) for each in rows.addresses]
            steps = e.least(e.binary("sub", matrix.depth, first), e.index(_STEPS))
            end = End.after(e, e.add(first, steps), matrix.depth) if self.product.long else None
            with e.loop(e.index(0), count) as tile:
                column = e.mul(e.add(left, tile), self.vectors * self.lanes)
                here = e.offset(start, e.mul(column, self.terms.lane_bytes))
                sums = self._taken(tile, block)
                self._add(sums, factors, here, steps, column)
                if end is not None:
                    self._totals(tile, sums).at(end)
                at_end = e.compare("icmp eq", block, last)
                with e.when(at_end):
                    self.epilogue.emit(job._replace(column=column), rows, sums)
                with e.when(e.binary("xor", at_end, e.constant(at_end.kind, 1))):
                    self._keep(tile, sums)

    def _add(
        self, sums: Sequence[Sequence[Variable]], factors: Sequence[Register], here: Register,
        steps: Register, column: Register,
    ) -> None:  # fmt: skip
        """Emit the additions of a block of rows, unrolled without masks if block and tile are full."""
        e, lanes = self.e, self.lanes
        full = e.compare("icmp eq", steps, e.index(_STEPS))
        inside = e.compare("icmp sle", e.add(column, self.vectors * lanes), self.columns)
        usual = e.binary("and", full, inside)
        with e.when(usual):
            for k in range(_STEPS):
                self._step(sums, factors, here, e.index(k), None)
        with e.when(e.binary("xor", usual, e.constant(usual.kind, 1))):
            starts = [e.add(column, v * lanes) for v in range(self.vectors)]
            masks = [lanes_before(e, start, self.columns, lanes) for start in starts]
            with e.loop(e.index(0), steps) as k:
                self._step(sums, factors, here, k, masks)

    def _step(
        self, sums: Sequence[Sequence[Variable]], factors: Sequence[Register], here: Register, k: Register,
        masks: Sequence[Register] | None,
    ) -> None:  # fmt: skip
        """Emit the additions of row `k` of a block to the accumulators of a tile."""
        e = self.e
        row = e.offset(here, e.mul(k, self.matrix.row_bytes))
        columns = [
            e.load(e.offset(row, e.index(v * self.line)), self.vector, mask, self.terms.lane_bytes)
            for v, mask in enumerate(masks or [None] * self.vectors)
        ]
        for factor, accumulators in zip(factors, sums, strict=True):
            x = self.terms.factor(e.offset(factor, e.mul(k, self.matrix.step_bytes)))
            for slot, y in zip(accumulators, columns, strict=True):
                e.assign(slot, self.terms.add(x, y, e.get(slot)))

    # ------------------------------------------------------------ accumulators between blocks

    def _place(self, tile: Register, number: int) -> Register:
        base = self.e.offset(self.body.own_scratch(), self.e.mul(tile, self.product.tile_bytes))
        return self.e.offset(base, self.e.index(number * self.line))

    def _totals(self, tile: Register, sums: Sequence[Sequence[Variable]]) -> Totals:
        """Return the totals of a tile, which are in scratch memory after the accumulators of all tiles."""
        behind = self.e.index(self.product.streamed_tiles * self.product.tile_bytes)
        return Totals(
            self.e, [slot for row in sums for slot in row], self.e.offset(self._place(tile, 0), behind)
        )

    def _taken(self, tile: Register, block: Register) -> list[list[Variable]]:
        """Emit the load of the accumulators of a tile; they are 0 before the first block."""
        e, count = self.e, self.product.rows * self.vectors
        slots = [e.variable(e.constant(self.vector, 0)) for _ in range(count)]
        with e.when(e.compare("icmp sgt", block, e.index(0))):
            for number, slot in enumerate(slots):
                e.assign(slot, e.load(self._place(tile, number), self.vector))
        return [slots[n : n + self.vectors] for n in range(0, count, self.vectors)]

    def _keep(self, tile: Register, sums: Sequence[Sequence[Variable]]) -> None:
        for number, slot in enumerate(slot for row in sums for slot in row):
            self.e.store(self.e.get(slot), self._place(tile, number))
