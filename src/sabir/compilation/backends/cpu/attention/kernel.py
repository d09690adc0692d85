"""Attention: a product, a function of each row of its result such as Softmax, and a product with that.

The scores of some rows stay in the cache of a core: they are computed from panels of keys, go through the
passes of their nest, and are multiplied with the values, which are read in place. So nothing of the size of
all scores is ever in memory. A job reads a panel of keys, and a block of values, once for all of its rows.
With few rows it copies the keys into panels itself. Every sum runs in the order of its index, as in a
product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from sabir.compilation.backends.cpu.elementwise.kernel import Scratch, row_pass
from sabir.compilation.backends.cpu.emit.body import Body, Point, kind_of
from sabir.compilation.backends.cpu.emit.emitter import Emitter, Kind, Register
from sabir.compilation.backends.cpu.emit.jobs import lanes_before
from sabir.compilation.backends.cpu.emit.nest import Accumulated, Nest
from sabir.compilation.backends.cpu.emit.row_passes import passes_of
from sabir.compilation.backends.cpu.products.panel_copies import PanelSource, copy_panel
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Variable

Keys: TypeAlias = Literal["panels", "rows", "columns"]

_BLOCK = 64  # keys whose values all rows of a job are multiplied with before the next ones


@dataclass(frozen=True, slots=True)
class Attention:
    """Two products around a nest over the rows of scores.

    `scores` runs over the batch axes, rows and keys, and folds along the keys; its last access is the row of
    scores, which it reads and in the end writes. `output` is the epilogue over the batch axes, rows and
    columns. A tile of scores has `rows` rows by `vectors` vectors of `lanes`; one of results has
    `result_rows` by `columns` vectors. In a `whole` one these fill all columns: nothing is read or written
    under a mask. A job has `most` rows at most, a multiple of `rows`.

    `keys` are packed in panels before, or lie as rows, whose elements are side by side, or as columns.
    """

    scores: Nest
    output: Nest
    element: str
    rows: int
    vectors: int
    result_rows: int
    columns: int
    lanes: int
    most: int
    keys: Keys = "panels"
    whole: bool = False

    @property
    def batch(self) -> int:
        """The number of batch axes."""
        return self.output.axes - 2

    def __str__(self) -> str:
        tile = f"tile {self.rows}x{self.vectors} and {self.result_rows}x{self.columns} lanes {self.lanes}"
        tile += f" of {self.most} rows, keys in {self.keys}{' whole' if self.whole else ''}"
        return f"attention {self.element} {tile}\nscores {self.scores}\noutput {self.output}"


class AttentionLayout:
    """Where the arguments of an attention kernel lie, after those of its nests.

    Of each operand: buffer and offset, then the bytes from row to row (of packed keys: of a panel; of
    columns: from one element of a key to the next), then its strides along the batch axes; at the end the
    depth of the first product, the rows of a job, and the offset of the scores in the scratch of a thread.
    """

    def __init__(self, attention: Attention, start: int) -> None:
        self.queries = start
        self.keys = self.queries + 3 + attention.batch
        self.values = self.keys + 3 + attention.batch
        self.depth = self.values + 3 + attention.batch
        self.job_rows = self.depth + 1
        self.row_offset = self.depth + 2
        self.count = self.depth + 3


def attention_text(attention: Attention) -> str:
    """Return the LLVM module of an attention kernel."""
    return _AttentionEmitter(attention).text()


class _AttentionEmitter:
    """The scratch memory of a thread holds the rows of scores, the sums of results, and a panel of keys."""

    def __init__(self, attention: Attention) -> None:
        self.spec, self.e = attention, Emitter(opaque_loops=True)
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
        self.job_rows = e.argument(self.layout.job_rows)
        self.panels = self._up(self.keys, self.width)
        self.pitch = e.mul(self.panels, self.width * self.size)
        wide = attention.columns * attention.lanes
        self.line = e.mul(self._up(self.columns, wide), wide * self.size)  # bytes of a row of sums
        self.area = e.offset(self.scores.own_scratch(), e.argument(self.layout.row_offset))
        self.sums = e.offset(self.area, e.mul(self.pitch, attention.most))
        self.panel = e.offset(self.sums, e.mul(self.line, attention.most + attention.result_rows))

    def _up(self, count: Register, step: int) -> Register:
        return self.e.binary("udiv", self.e.add(count, step - 1), self.e.index(step))

    def text(self) -> str:
        e = self.e
        scratch = Scratch(self.scores, self.passes)
        blocks = e.binary("udiv", e.add(e.add(self.row_count, self.job_rows), -1), self.job_rows)
        jobs = blocks
        for size in self.batch_sizes:
            jobs = e.mul(jobs, size)
        low, high = e.share(jobs)
        with e.loop(low, high) as job:
            indices = self._batch(e.binary("udiv", job, blocks))
            first = e.mul(e.binary("urem", job, blocks), self.job_rows)
            count = e.least(self.job_rows, e.binary("sub", self.row_count, first))
            self._score(indices, first, count)
            with e.loop(e.index(0), count) as m:
                self._row([*indices, e.add(first, m)], e.offset(self.area, e.mul(m, self.pitch)), scratch)
            self._results(indices, count)
            self._store(indices, first, count)
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

    def _score(self, indices: Sequence[Register], first: Register, count: Register) -> None:
        """Emit the product of some rows with all keys, into the scratch memory of the thread."""
        e, spec = self.e, self.spec
        queries, row_bytes = self._operand(self.layout.queries, indices)
        keys, bytes_ = self._operand(self.layout.keys, indices)
        with e.loop(e.index(0), self.panels) as panel:
            base = self._panel(keys, bytes_, panel)
            to = e.offset(self.area, e.mul(panel, self.width * self.size))
            with e.loop(e.index(0), count, spec.rows) as m:
                rows = self._rows(e.offset(queries, e.mul(first, row_bytes)), row_bytes, m, count, spec.rows)
                sums = self._zeros(spec.rows, spec.vectors)
                with e.loop(e.index(0), self.depth) as k:
                    line = e.offset(base, e.mul(k, self.width * self.size))
                    columns = self._line(line, [None] * spec.vectors, spec.lanes * self.size)
                    self._accumulate(sums, rows, k, columns)
                self._keep(sums, e.offset(to, e.mul(m, self.pitch)), self.pitch)

    def _panel(self, keys: Register, bytes_: Register, panel: Register) -> Register:
        """Return the address of a panel of keys, which is copied where the keys are not packed."""
        e, spec = self.e, self.spec
        if spec.keys == "panels":
            return e.offset(keys, e.mul(panel, bytes_))
        source = PanelSource(spec.element, spec.lanes, keys, bytes_, self.depth, self.keys)
        copy_panel(e, source, e.mul(panel, self.width), self.width, self.panel, across=spec.keys == "rows")
        return self.panel

    def _rows(
        self, base: Register, row_bytes: Register, m: Register, count: Register, rows: int
    ) -> list[Register]:
        """Return the addresses of the rows of a tile; those past the end repeat the last."""
        e, last = self.e, self.e.add(count, -1)
        return [e.offset(base, e.mul(e.least(e.add(m, n), last), row_bytes)) for n in range(rows)]

    def _zeros(self, rows: int, count: int) -> list[list[Variable]]:
        zero = self.e.constant(self.vector, 0)
        return [[self.e.variable(zero) for _ in range(count)] for _ in range(rows)]

    def _line(self, address: Register, masks: Sequence[Register | None], align: int) -> list[Register]:
        """Emit the loads of vectors side by side."""
        e, step = self.e, self.spec.lanes * self.size
        return [
            e.load(e.offset(address, e.index(v * step)), self.vector, mask, align=align)
            for v, mask in enumerate(masks)
        ]

    def _accumulate(
        self, sums: list[list[Variable]], rows: Sequence[Register], k: Register, columns: Sequence[Register]
    ) -> None:
        e = self.e
        for row, accumulators in zip(rows, sums, strict=True):
            x = e.load(e.offset(row, e.mul(k, self.size)), Kind(self.vector.scalar))
            wide = e.splat(x, self.spec.lanes)
            for slot, y in zip(accumulators, columns, strict=True):
                e.assign(slot, e.fma(wide, y, e.get(slot)))

    def _keep(self, sums: list[list[Variable]], to: Register, pitch: Register) -> None:
        """Emit the stores of a tile."""
        e, step = self.e, self.spec.lanes * self.size
        for m, accumulators in enumerate(sums):
            row = e.offset(to, e.mul(pitch, m)) if m else to
            for v, slot in enumerate(accumulators):
                e.store(e.get(slot), e.offset(row, e.index(v * step)))

    def _row(self, indices: list[Register], row: Register, scratch: Scratch) -> None:
        """Emit the passes over one row of scores, in place."""
        self.scores.rebase(len(self.spec.scores.accesses) - 1, row)
        here = Point([*indices, self.e.index(0)])
        for number, roots in enumerate(self.passes.roots):
            row_pass(self.scores, self.passes, scratch, number, roots, here)

    # ------------------------------------------------------------ results

    def _results(self, indices: Sequence[Register], count: Register) -> None:
        """Emit the product of the rows of scores with the values: sums of blocks of keys."""
        e, spec = self.e, self.spec
        values, row_bytes = self._operand(self.layout.values, indices)
        self._clear(count)
        with e.loop(e.index(0), self.keys, _BLOCK) as start:
            end = e.least(e.add(start, _BLOCK), self.keys)
            with e.loop(e.index(0), self.columns, spec.columns * spec.lanes) as column:
                masks = [self._mask(e.add(column, v * spec.lanes)) for v in range(spec.columns)]
                base = e.offset(values, e.mul(column, self.size))
                with e.loop(e.index(0), count, spec.result_rows) as m:
                    rows = self._rows(self.area, self.pitch, m, count, spec.result_rows)
                    kept = e.offset(e.offset(self.sums, e.mul(m, self.line)), e.mul(column, self.size))
                    sums = self._zeros(spec.result_rows, spec.columns)
                    with e.loop(start, end) as k:
                        line = e.offset(base, e.mul(k, row_bytes))
                        self._accumulate(sums, rows, k, self._line(line, masks, self.size))
                    self._add(sums, kept)

    def _clear(self, count: Register) -> None:
        """Emit the zeros with which the sums of a job begin."""
        e = self.e
        size = e.mul(e.add(count, self.spec.result_rows), self.line)
        with e.loop(e.index(0), size, self.spec.lanes * self.size) as place:
            e.store(e.constant(self.vector, 0), e.offset(self.sums, place))

    def _add(self, sums: list[list[Variable]], to: Register) -> None:
        """Emit that the sums of a block of keys are added to those of the blocks before it."""
        e, step = self.e, self.spec.lanes * self.size
        for m, accumulators in enumerate(sums):
            row = e.offset(to, e.mul(self.line, m)) if m else to
            for v, slot in enumerate(accumulators):
                place = e.offset(row, e.index(v * step))
                e.store(e.binary("fadd", e.load(place, self.vector), e.get(slot)), place)

    def _mask(self, column: Register) -> Register | None:
        return None if self.spec.whole else lanes_before(self.e, column, self.columns, self.spec.lanes)

    def _store(self, indices: Sequence[Register], first: Register, count: Register) -> None:
        """Emit the epilogue of a job, in loops over its rows and vectors."""
        e, spec = self.e, self.spec
        with e.loop(e.index(0), count) as m, e.loop(e.index(0), self.columns, spec.lanes) as column:
            line = e.offset(self.sums, e.mul(m, self.line))
            x = e.load(e.offset(line, e.mul(column, self.size)), self.vector)
            self._write([*indices, e.add(first, m), column], x)

    def _write(self, indices: list[Register], x: Register) -> None:
        nest = self.spec.output
        point = Point(indices, self.spec.lanes, self._mask(indices[-1]))
        for number, step in enumerate(nest.steps):
            if isinstance(step, Accumulated):
                point.values[number] = x
        for access, number in nest.stores:
            self.output.write(access, self.output.value(number, point), point)
