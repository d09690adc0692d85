"""Attention: a product, a function of each row of its result such as Softmax, and a product with that.

The scores of some rows stay in the cache of a core: they are computed from packed keys, go through the
passes of their nest, and are multiplied with the values, which are read in place. So nothing of the size of
all scores is ever in memory. Every sum runs in the order of its index, as in a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.kernels._body import Body, Point, element_bytes, kind_of
from sabir.compilation.kernels._emitter import Emitter, Kind, Register
from sabir.compilation.kernels._jobs import lanes_before
from sabir.compilation.kernels._loops import Scratch, row_pass
from sabir.compilation.kernels._nest import Accumulated, Apply, Nest
from sabir.compilation.kernels._passes import passes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.kernels._emitter import Variable

_UNROLLED = 6  # steps of an epilogue that is emitted for each vector of a tile


@dataclass(frozen=True, slots=True)
class Attention:
    """Two products around a nest over the rows of scores.

    `scores` runs over the batch axes, rows and keys, and folds along the keys; its last access is the row of
    scores, which it reads and in the end writes. `output` is the epilogue over the batch axes, rows and
    columns. A tile of scores has `rows` rows by `vectors` vectors of `lanes`; one of results has
    `columns` vectors. In a `whole` one these fill all columns: nothing is read or written under a mask.
    """

    scores: Nest
    output: Nest
    element: str
    rows: int
    vectors: int
    columns: int
    lanes: int
    whole: bool = False

    @property
    def batch(self) -> int:
        """The number of batch axes."""
        return self.output.axes - 2

    def __str__(self) -> str:
        tile = f"tile {self.rows}x{self.vectors} and {self.rows}x{self.columns} lanes {self.lanes}"
        tile += " whole" if self.whole else ""
        return f"attention {self.element} {tile}\nscores {self.scores}\noutput {self.output}"


class AttentionLayout:
    """Where the arguments of an attention kernel lie, after those of its nests.

    Of each operand: buffer and offset, then the bytes from row to row (of the packed keys: of a panel), then
    its strides along the batch axes; at the end the depth of the first product and the offset of the scores
    in the scratch memory of a thread.
    """

    def __init__(self, attention: Attention, start: int) -> None:
        self.queries = start
        self.keys = self.queries + 3 + attention.batch
        self.values = self.keys + 3 + attention.batch
        self.depth = self.values + 3 + attention.batch
        self.row_offset = self.depth + 1
        self.count = self.depth + 2


def attention_text(attention: Attention) -> str:
    """Return the LLVM module of an attention kernel."""
    return _Emission(attention).text()


class _Emission:
    def __init__(self, attention: Attention) -> None:
        self.spec, self.e = attention, Emitter()
        e = self.e
        self.scores = Body(e, attention.scores)
        self.output = Body(e, attention.output, first=self.scores.layout.count)
        self.layout = AttentionLayout(attention, self.output.layout.end)
        self.passes = passes_of(attention.scores, keep=True)
        *self.batch_sizes, self.row_count, self.columns = self.output.sizes
        self.keys = self.scores.sizes[-1]
        self.vector = kind_of(attention.element, attention.lanes)
        self.size = element_bytes(attention.element)
        self.width = attention.vectors * attention.lanes
        self.depth = e.argument(self.layout.depth)
        self.panels = e.binary("udiv", e.add(self.keys, self.width - 1), e.index(self.width))
        self.pitch = e.mul(self.panels, self.width * self.size)
        self.area = e.offset(self.scores.own_scratch(), e.argument(self.layout.row_offset))

    def text(self) -> str:
        e, rows = self.e, self.spec.rows
        scratch = Scratch(self.scores, self.passes)
        blocks = e.binary("udiv", e.add(self.row_count, rows - 1), e.index(rows))
        jobs = blocks
        for size in self.batch_sizes:
            jobs = e.mul(jobs, size)
        low, high = e.share(jobs)
        with e.loop(low, high) as job:
            indices = self._batch(e.binary("udiv", job, blocks))
            first = e.mul(e.binary("urem", job, blocks), rows)
            count = e.least(e.index(rows), e.binary("sub", self.row_count, first))
            self._score(indices, first)
            with e.loop(e.index(0), count) as m:
                self._row([*indices, e.add(first, m)], e.offset(self.area, e.mul(m, self.pitch)), scratch)
            self._results(indices, first, count)
        return e.text()

    def _batch(self, batch: Register) -> list[Register]:
        e, found = self.e, list[Register]()
        for size in reversed(self.batch_sizes[1:]):
            found.append(e.binary("urem", batch, size))
            batch = e.binary("udiv", batch, size)
        return [batch, *found[::-1]] if self.batch_sizes else []

    def _operand(self, place: int, indices: Sequence[Register]) -> tuple[Register, Register]:
        """Return the address of an operand for a place of the batch, and its bytes from row to row."""
        e = self.e
        base = self.output.pointer(place)
        for axis, index in enumerate(indices):
            base = e.offset(base, e.mul(index, e.argument(place + 3 + axis)))
        return base, e.argument(place + 2)

    # ------------------------------------------------------------ scores

    def _score(self, indices: Sequence[Register], first: Register) -> None:
        """Emit the product of some rows with all keys, into the scratch memory of the thread."""
        e, spec = self.e, self.spec
        queries, row_bytes = self._operand(self.layout.queries, indices)
        keys, panel_bytes = self._operand(self.layout.keys, indices)
        rows = self._rows(queries, row_bytes, first)
        with e.loop(e.index(0), self.panels) as panel:
            base = e.offset(keys, e.mul(panel, panel_bytes))
            sums = self._sums(spec.vectors)
            with e.loop(e.index(0), self.depth) as k:
                line = e.offset(base, e.mul(k, self.width * self.size))
                columns = [
                    e.load(
                        e.offset(line, e.index(v * spec.lanes * self.size)),
                        self.vector,
                        align=spec.lanes * self.size,
                    )
                    for v in range(spec.vectors)
                ]
                self._accumulate(sums, rows, k, columns)
            to = e.offset(self.area, e.mul(panel, self.width * self.size))
            for m in range(spec.rows):
                row = e.offset(to, e.mul(self.pitch, m)) if m else to
                for v in range(spec.vectors):
                    e.store(e.get(sums[m][v]), e.offset(row, e.index(v * spec.lanes * self.size)))

    def _rows(self, base: Register, row_bytes: Register, first: Register) -> list[Register]:
        """Return the addresses of the rows of a tile; those past the end repeat the last."""
        e, last = self.e, self.e.add(self.row_count, -1)
        return [
            e.offset(base, e.mul(e.least(e.add(first, m), last), row_bytes)) for m in range(self.spec.rows)
        ]

    def _sums(self, count: int) -> list[list[Variable]]:
        zero = self.e.constant(self.vector, 0)
        return [[self.e.variable(zero) for _ in range(count)] for _ in range(self.spec.rows)]

    def _accumulate(
        self, sums: list[list[Variable]], rows: Sequence[Register], k: Register, columns: Sequence[Register]
    ) -> None:
        e = self.e
        for row, accumulators in zip(rows, sums, strict=True):
            x = e.load(e.offset(row, e.mul(k, self.size)), Kind(self.vector.scalar))
            wide = e.splat(x, self.spec.lanes)
            for slot, y in zip(accumulators, columns, strict=True):
                e.assign(slot, e.fma(wide, y, e.get(slot)))

    def _row(self, indices: list[Register], row: Register, scratch: Scratch) -> None:
        """Emit the passes over one row of scores, in place."""
        self.scores.rebase(len(self.spec.scores.accesses) - 1, row)
        here = Point([*indices, self.e.index(0)])
        for number, roots in enumerate(self.passes.roots):
            row_pass(self.scores, self.passes, scratch, number, roots, here)

    # ------------------------------------------------------------ results

    def _results(self, indices: Sequence[Register], first: Register, count: Register) -> None:
        """Emit the product of the rows of scores with the values, and its epilogue."""
        e, spec = self.e, self.spec
        values, row_bytes = self._operand(self.layout.values, indices)
        rows = [e.offset(self.area, e.mul(self.pitch, m)) if m else self.area for m in range(spec.rows)]
        with e.loop(e.index(0), self.columns, spec.columns * spec.lanes) as column:
            masks = [self._mask(e.add(column, v * spec.lanes)) for v in range(spec.columns)]
            base = e.offset(values, e.mul(column, self.size))
            sums = self._sums(spec.columns)
            with e.loop(e.index(0), self.keys) as k:
                line = e.offset(base, e.mul(k, row_bytes))
                columns = [
                    e.load(e.offset(line, e.index(v * spec.lanes * self.size)), self.vector, masks[v])
                    for v in range(spec.columns)
                ]
                self._accumulate(sums, rows, k, columns)
            self._store(indices, first, count, column, sums)

    def _mask(self, column: Register) -> Register | None:
        return None if self.spec.whole else lanes_before(self.e, column, self.columns, self.spec.lanes)

    def _store(
        self, indices: Sequence[Register], first: Register, count: Register, column: Register,
        sums: list[list[Variable]],
    ) -> None:  # fmt: skip
        """Emit the epilogue in a loop over the vectors of the tile, which wait on the stack."""
        e, spec = self.e, self.spec
        size = spec.lanes * self.size
        tile = e.stack(spec.rows * spec.columns * size)
        for m in range(spec.rows):
            for v in range(spec.columns):
                e.store(
                    e.get(sums[m][v]),
                    e.offset(tile, e.index((m * spec.columns + v) * size)),
                    align=size,
                )
        unrolled = sum(isinstance(s, Apply) for s in spec.output.steps) <= _UNROLLED
        with e.loop(e.index(0), count) as m:
            line = e.offset(tile, e.mul(m, spec.columns * size))
            for v in range(spec.columns) if unrolled else ():
                x = e.load(e.offset(line, e.index(v * size)), self.vector, align=size)
                self._write([*indices, e.add(first, m), e.add(column, v * spec.lanes)], x)
            if not unrolled:
                with e.loop(e.index(0), e.index(spec.columns)) as v:
                    x = e.load(e.offset(line, e.mul(v, size)), self.vector, align=size)
                    self._write([*indices, e.add(first, m), e.add(column, e.mul(v, spec.lanes))], x)

    def _write(self, indices: list[Register], x: Register) -> None:
        nest = self.spec.output
        point = Point(indices, self.spec.lanes, self._mask(indices[-1]))
        for number, step in enumerate(nest.steps):
            if isinstance(step, Accumulated):
                point.values[number] = x
        for access, number in nest.stores:
            self.output.write(access, self.output.value(number, point), point)
