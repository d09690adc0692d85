"""Attention: `f(queries @ keys) @ values`, where `f` is a function of each row such as Softmax.

queries: [rows, depth]; keys: [depth, keys]; values: [keys, columns], for each index of the batch axes. A job
computes a few rows, whose scores stay in the cache of a core: a GEMM with panels of keys computes them, the
passes of their nest apply `f`, and a second GEMM multiplies them with the values, which are read in place.
So the matrix of all scores is never stored. A job reads each panel of keys, and each block of values, once
for all of its rows. With few rows it copies the keys into panels itself. It computes only the keys from the
first to the last one that a mask allows any of its rows, except that a value of the others that is no number
makes the results NaN. Skipped keys change no bit: they have weight 0, and those before begin with a block.
Both products add their terms in the order of k, as other products do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from sabir.compilation.backends.cpu.elementwise.kernel import Scratch, block_of_rows, row_pass
from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body, Point, kind_of
from sabir.compilation.backends.cpu.emit.emitter import BOOL, Emitter, Kind, Register
from sabir.compilation.backends.cpu.emit.jobs import lanes_before
from sabir.compilation.backends.cpu.emit.nest import Accumulated, Nest
from sabir.compilation.backends.cpu.emit.row_passes import passes_of
from sabir.compilation.backends.cpu.products.panel_copies import PanelSource, copy_panel
from sabir.compilation.plan.signature import KernelSignature, declared
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Variable

Keys: TypeAlias = Literal["panels", "rows", "columns"]

_BLOCK = 64  # keys of a block of the second product: all rows of a job read its values before the next block


@dataclass(frozen=True, slots=True)
class Attention:
    """The specification of an attention kernel: two products around a nest over the rows of scores.

    The nest `scores` has the batch axes, rows and keys, and folds along the keys; its last access is the row
    of scores, which it reads and overwrites. The nest `output` is the epilogue, with the batch axes, rows and
    columns. A tile of scores has `rows` rows by `vectors` vectors of `lanes` elements, a tile of results
    `result_rows` rows by `columns` vectors. `whole`: the columns of the results are a multiple of a tile, and
    no load of values or store of results needs a mask. A job has at most `most` rows, a multiple of `rows`.

    `keys` is the order of the keys in memory: `panels` are packed; in `rows` the elements of each key are
    contiguous; in `columns` the same element of consecutive keys is. `mask` is the access of the scores that
    is a mask: a job has the keys from the first to the last that it does not exclude for all rows
    (`neutral`); -1 is none.
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
    mask: int = -1

    @property
    def signature(self) -> KernelSignature:
        """The arguments of both nests, the three operands, the depth and the rows of a job.

        `line` of an operand is the bytes between rows; of packed keys, the bytes of a panel; of keys in
        columns, the bytes from one element of a key to the next. The scores begin at byte `row_offset` of
        the scratch memory of a thread.
        """
        operand = declared(tensor="tensor", line="bytes", batch=("stride", self.batch))
        return declared(
            scores=self.scores.signature, output=self.output.signature, queries=operand, keys=operand,
            values=operand, depth="size", job_rows="size", row_offset="bytes",
        )  # fmt: skip

    @property
    def batch(self) -> int:
        """The number of batch axes."""
        return self.output.axes - 2

    def __str__(self) -> str:
        tile = f"tile {self.rows}x{self.vectors} and {self.result_rows}x{self.columns} lanes {self.lanes}"
        tile += f" of {self.most} rows, keys in {self.keys}{' whole' if self.whole else ''}"
        tile += f" bounded by a{self.mask}" if self.mask >= 0 else ""
        return f"attention {self.element} {tile}\nscores {self.scores}\noutput {self.output}"


def attention_text(attention: Attention) -> str:
    """Return the LLVM module of an attention kernel."""
    return _AttentionEmitter(attention).text()


class _AttentionEmitter:
    """Emits the kernel.

    The scratch memory of a thread contains, in this order, the values that passes keep for later ones, the
    rows of scores, the sums of results, and a panel of keys.
    """

    def __init__(self, attention: Attention) -> None:
        self.spec, self.e = attention, Emitter(opaque_loops=True)
        e = self.e
        self.arguments = Arguments(e, attention.signature)
        self.scores = Body(attention.scores, self.arguments.group("scores"))
        self.output = Body(attention.output, self.arguments.group("output"))
        self.passes = passes_of(attention.scores, keep=True)
        *self.batch_sizes, self.row_count, self.columns = self.output.sizes
        self.keys = self.end = self.scores.sizes[-1]
        self.begin = e.index(0)
        self.vector = kind_of(attention.element, attention.lanes)
        self.size = element_bytes(attention.element)
        self.width = attention.vectors * attention.lanes
        self.depth, self.job_rows = self.arguments.number("depth"), self.arguments.number("job_rows")
        self.panels = self._up(self.keys, self.width)
        self.pitch = e.mul(self.panels, self.width * self.size)
        wide = attention.columns * attention.lanes
        self.line = e.mul(self._up(self.columns, wide), wide * self.size)  # bytes of a row of sums
        self.area = e.offset(self.scores.own_scratch(), self.arguments.number("row_offset"))
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
            self._bound(indices, first, count)
            self._score(indices, first, count)
            with e.loop(e.index(0), count) as m:
                self._row([*indices, e.add(first, m)], e.offset(self.area, e.mul(m, self.pitch)), scratch)
            self._results(indices, count)
            self._store(indices, first, count)
        return e.text()

    def _bound(self, indices: list[Register], first: Register, count: Register) -> None:
        """Emit the keys of a job: from the first to the last that the mask does not exclude for all rows.

        There is one or more: a row without keys has the scores of excluded ones.
        """
        e = self.e
        if self.spec.mask < 0:
            return
        self.end = self.scores.sizes[-1] = self._end(indices, first, count)
        begin = e.least(self._begin(indices, first, count), e.add(self.end, -1))
        block = max(_BLOCK, block_of_rows(self.spec.scores, self.passes))
        self.begin = self.scores.begin = e.binary("and", begin, e.index(-block))

    def _begin(self, indices: list[Register], first: Register, count: Register) -> Register:
        """Emit a number of keys before the first one that the mask does not exclude for a row of a job."""
        e, lanes = self.e, self.spec.lanes
        whole = e.mul(e.binary("udiv", self.keys, e.index(lanes)), lanes)
        begin = e.variable(whole)
        with e.loop(e.index(0), count) as m, e.when(e.compare("icmp sgt", e.get(begin), e.index(0))):
            row = [*indices, e.add(first, m)]
            place = e.variable(e.index(0))

            def after() -> Register:
                start = e.get(place)
                seen = e.any(self.scores.read(self.spec.mask, Point([*row, start], lanes)))
                e.assign(place, e.select(seen, start, e.add(start, lanes)))
                more = e.compare("icmp slt", e.add(start, lanes), e.get(begin))
                return e.binary("and", more, e.binary("xor", seen, e.constant(BOOL, 1)))

            e.repeat(after)
            e.assign(begin, e.least(e.get(begin), e.get(place)))
        return e.get(begin)

    def _end(self, indices: list[Register], first: Register, count: Register) -> Register:
        """Emit the number of keys up to the last one that the mask does not exclude for a row of a job."""
        e = self.e
        lanes = self.spec.lanes
        whole = e.mul(e.binary("udiv", self.keys, e.index(lanes)), lanes)
        end = e.variable(e.index(1))
        with e.loop(e.index(0), count) as m:
            row = [*indices, e.add(first, m)]
            with e.loop(whole, self.keys) as k, e.when(self.scores.read(self.spec.mask, Point([*row, k]))):
                e.assign(end, e.greatest(e.get(end), e.add(k, 1)))
            place = e.variable(whole)
            with e.when(e.compare("icmp sgt", whole, e.get(end))):

                def before() -> Register:
                    start = e.add(e.get(place), -lanes)
                    seen = e.any(self.scores.read(self.spec.mask, Point([*row, start], lanes)))
                    e.assign(place, e.select(seen, e.get(place), start))
                    more = e.compare("icmp sgt", start, e.get(end))
                    return e.binary("and", more, e.binary("xor", seen, e.constant(BOOL, 1)))

                e.repeat(before)
            e.assign(end, e.greatest(e.get(end), e.get(place)))
        return e.least(e.get(end), self.keys)

    def _batch(self, batch: Register) -> list[Register]:
        e, found = self.e, list[Register]()
        for size in reversed(self.batch_sizes[1:]):
            found.append(e.binary("urem", batch, size))
            batch = e.binary("udiv", batch, size)
        return [batch, *found[::-1]] if self.batch_sizes else []

    def _operand(self, name: str, indices: Sequence[Register]) -> tuple[Register, Register]:
        """Return the address of an operand at indices of the batch axes, and its argument `line` in bytes."""
        e, operand = self.e, self.arguments.group(name)
        base = operand.pointer("tensor")
        for axis, index in enumerate(indices):
            base = e.offset(base, e.mul(index, operand.number("batch", axis)))
        return base, operand.number("line")

    # ------------------------------------------------------------ scores

    def _score(self, indices: Sequence[Register], first: Register, count: Register) -> None:
        """Emit the product of `count` rows with all keys; the scores are stored in scratch memory."""
        e, spec = self.e, self.spec
        queries, row_bytes = self._operand("queries", indices)
        keys, bytes_ = self._operand("keys", indices)
        first_panel = e.binary("udiv", self.begin, e.index(self.width))
        with e.loop(first_panel, self._up(self.end, self.width)) as panel:
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
        """Return the address of a panel of keys; emit the copy of the panel if the keys are not packed."""
        e, spec = self.e, self.spec
        if spec.keys == "panels":
            return e.offset(keys, e.mul(panel, bytes_))
        source = PanelSource(spec.element, spec.lanes, keys, bytes_, self.depth, self.keys)
        copy_panel(e, source, e.mul(panel, self.width), self.width, self.panel, across=spec.keys == "rows")
        return self.panel

    def _rows(
        self, base: Register, row_bytes: Register, m: Register, count: Register, rows: int
    ) -> list[Register]:
        """Return the addresses of the rows of a tile; rows past the end repeat the last one."""
        e, last = self.e, self.e.add(count, -1)
        return [e.offset(base, e.mul(e.least(e.add(m, n), last), row_bytes)) for n in range(rows)]

    def _zeros(self, rows: int, count: int) -> list[list[Variable]]:
        zero = self.e.constant(self.vector, 0)
        return [[self.e.variable(zero) for _ in range(count)] for _ in range(rows)]

    def _line(self, address: Register, masks: Sequence[Register | None], align: int) -> list[Register]:
        """Emit the loads of adjacent vectors, one for each mask."""
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
        """Emit the stores of the accumulators of a tile."""
        e, step = self.e, self.spec.lanes * self.size
        for m, accumulators in enumerate(sums):
            row = e.offset(to, e.mul(pitch, m)) if m else to
            for v, slot in enumerate(accumulators):
                e.store(e.get(slot), e.offset(row, e.index(v * step)))

    def _row(self, indices: list[Register], row: Register, scratch: Scratch) -> None:
        """Emit the passes over one row of scores, which they overwrite."""
        self.scores.rebase(len(self.spec.scores.accesses) - 1, row)
        here = Point([*indices, self.e.index(0)])
        for number, roots in enumerate(self.passes.roots):
            row_pass(self.scores, self.passes, scratch, number, roots, here)

    # ------------------------------------------------------------ results

    def _results(self, indices: Sequence[Register], count: Register) -> None:
        """Emit the product of the rows of scores with the values, one block of keys after another."""
        e, spec = self.e, self.spec
        values, row_bytes = self._operand("values", indices)
        self._clear(count)
        with e.loop(self.begin, self.end, _BLOCK) as start:
            end = e.least(e.add(start, _BLOCK), self.end)
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
        if spec.mask >= 0:
            self._add_excluded(values, row_bytes, count)

    def _add_excluded(self, values: Register, row_bytes: Register, count: Register) -> None:
        """Emit the sums over the values of the excluded keys, times 0: NaN if a value is no number, else 0.

        They are the same for all rows of a job, so that they cost as much as one row.
        """
        e, spec = self.e, self.spec
        zero = e.constant(self.vector, 0)
        with e.loop(e.index(0), self.columns, spec.columns * spec.lanes) as column:
            masks = [self._mask(e.add(column, v * spec.lanes)) for v in range(spec.columns)]
            base = e.offset(values, e.mul(column, self.size))
            sums = self._zeros(1, spec.columns)
            for low, high in ((e.index(0), self.begin), (self.end, self.keys)):
                with e.loop(low, high) as k:
                    line = self._line(e.offset(base, e.mul(k, row_bytes)), masks, self.size)
                    for slot, x in zip(sums[0], line, strict=True):
                        e.assign(slot, e.fma(x, zero, e.get(slot)))
            with e.loop(e.index(0), count) as m:
                self._add(sums, e.offset(e.offset(self.sums, e.mul(m, self.line)), e.mul(column, self.size)))

    def _clear(self, count: Register) -> None:
        """Emit the stores of zeros to the sums of a job."""
        e = self.e
        size = e.mul(e.add(count, self.spec.result_rows), self.line)
        with e.loop(e.index(0), size, self.spec.lanes * self.size) as place:
            e.store(e.constant(self.vector, 0), e.offset(self.sums, place))

    def _add(self, sums: list[list[Variable]], to: Register) -> None:
        """Emit the addition of the accumulators of a block of keys to the sums of the blocks before it."""
        e, step = self.e, self.spec.lanes * self.size
        for m, accumulators in enumerate(sums):
            row = e.offset(to, e.mul(self.line, m)) if m else to
            for v, slot in enumerate(accumulators):
                place = e.offset(row, e.index(v * step))
                e.store(e.binary("fadd", e.load(place, self.vector), e.get(slot)), place)

    def _mask(self, column: Register) -> Register | None:
        return None if self.spec.whole else lanes_before(self.e, column, self.columns, self.spec.lanes)

    def _store(self, indices: Sequence[Register], first: Register, count: Register) -> None:
        """Emit the epilogue: loops over the rows and vectors of a job that apply it to the sums."""
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
