"""The GEMM kernel: tiles of rows by panels of columns, with an epilogue computed on the accumulators.

A matrix product has one axis of rows and one of `k`. A convolution, as im2col, has several of both: its rows
are the positions of windows, and `k` runs over the taps and channels of a window. The offset of an element
along `k` is the same in all rows, so a tile computes it once.

Packed `b` is `[panel][k][width]`; the columns of the last panel are padded with zeros. Every sum runs over
`k` in order in one accumulator, or over fixed parts of a long `k`, so that a row has the same bits in every
tile, batch and thread.

Integers are packed in groups of adjacent elements along `k`: each panel is the sums of its columns, then
`[k / group][width][group]`. Accumulators begin at `(taken - zero) * column sum`: `zero` is the zero point of
`a`, and `taken` the number that `Integers` subtracts from `a` for a signed dot product.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body, kind_of
from sabir.compilation.backends.cpu.emit.casts import cast
from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register, Variable
from sabir.compilation.backends.cpu.emit.epilogue import Epilogue, Job
from sabir.compilation.backends.cpu.emit.jobs import product_of
from sabir.compilation.backends.cpu.emit.terms import Dotted, Floats, Integers, Packed, Rounded
from sabir.compilation.backends.cpu.products.panel_copies import PanelSource, copy_panel, copy_rows
from sabir.compilation.backends.cpu.products.scales import Parameters
from sabir.compilation.backends.cpu.products.spec import DIRECT_STEPS, INTEGER_BITS
from sabir.compilation.backends.cpu.products.streaming import Matrix, Streams
from sabir.compilation.backends.cpu.products.tile_rows import TileRows
from sabir.compilation.backends.cpu.products.totals import Totals
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from sabir.compilation.backends.cpu.products.spec import Product


_CACHE_LINE = 64  # bytes
_NEAR = 2048  # bytes between a load of a panel and its prefetch, within which processors do not look ahead


def product_text(product: Product) -> str:
    """Return the LLVM module of a product's kernel."""
    return _ProductEmitter(product).text()


class _ProductEmitter:
    def __init__(self, product: Product) -> None:
        self.product, self.e = product, Emitter(opaque_loops=True)
        e, arguments = self.e, Arguments(self.e, product.signature)
        self.arguments, self.body = arguments, Body(product.nest, arguments.group("nest"))
        self.a, self.b = arguments.pointer("a"), arguments.pointer("b")
        row_strides = arguments.numbers("row_strides")
        self.panel_bytes, self.job_rows = arguments.number("panel_bytes"), arguments.number("job_rows")
        self.depths = arguments.numbers("depths")
        strides = arguments.numbers("depth_strides")
        self.inner_stride = strides.pop() if product.apart else None
        self.depth_strides = strides
        if product.blocked:
            self.blocks, self.block_stride = self.depths.pop(0), self.depth_strides.pop(0)
            self.last_block = e.add(self.blocks, -1)
        lanes = product.nest.lanes
        self.panel_terms = self._panel_terms()
        self.terms = Floats(e, product.element, "", lanes) if product.unpacks else self.panel_terms
        self.steps_inside = self._groups_of(self.depths[-1])
        self.steps = product_of(e, [*self.depths[:-1], self.steps_inside])
        self.depth = e.mul(self.blocks, self.steps) if product.blocked else self.steps  # of all blocks
        self.head = 4 * product.width if product.dot else 0  # bytes of the column sums that begin a panel
        self.vectors = product.panels * product.vectors
        self.batch_sizes = self.body.sizes[: product.batch]
        self.row_sizes, self.columns = self.body.sizes[product.batch : -1], self.body.sizes[-1]
        self.row_count = product_of(e, self.row_sizes)
        self.rows = TileRows(e, product.rows, self.row_sizes, row_strides)
        self.vector = kind_of("int32" if product.dotted else product.element, lanes)
        self.column_factor = self._column_factor()
        self.parameters = Parameters(product, arguments) if product.scaled else None
        self.epilogue = Epilogue(self.body, product, self.columns)
        step = self.inner_stride or self.terms.factor_bytes
        matrix = Matrix(self.depths[-1], self.panel_bytes, step)
        self.streams = (
            Streams(self.body, product, self.epilogue, self.terms, matrix) if product.streamed else None
        )

    def _panel_terms(self) -> Floats | Integers:
        product, lanes = self.product, self.product.nest.lanes
        if product.rounded:
            if product.dotted:
                return Dotted(self.e, product.narrow, lanes)
            return Rounded(self.e, product.narrow, lanes, lookup=product.lookup)
        if product.words:
            middle = 1 << (INTEGER_BITS[product.narrow] - 1) if product.centred else 0
            return Packed(self.e, product.narrow, lanes, middle=middle, lookup=product.lookup)
        if product.dot is None:
            return Floats(self.e, product.element, product.narrow, lanes)
        return Integers(self.e, product.dot, lanes)

    def _groups_of(self, count: Register) -> Register:
        """Return the number of lines of panels for `count` steps, the last of which may be partial."""
        e, group = self.e, self.terms.steps
        return count if group == 1 else e.binary("udiv", e.add(count, group - 1), e.index(group))

    def _column_factor(self) -> Register | None:
        """Return the factor of column sums in initial accumulators, in every lane; None if it is 0."""
        e, element, taken = self.e, self.product.zero, self.terms.taken
        if not element:
            return e.constant(self.vector, taken) if taken else None
        address = self.arguments.pointer("zero")
        zero = cast(e, e.load(address, kind_of(element)), element, "int32")
        return e.splat(e.binary("sub", e.constant(zero.kind, taken), zero), self.product.nest.lanes)

    def text(self) -> str:
        e, product = self.e, self.product
        width = product.width * product.panels
        groups = e.binary("udiv", e.add(self.columns, width - 1), e.index(width))
        if self.streams is not None:
            groups = self.streams.strips(groups, product_of(e, self.batch_sizes))
        chunks = e.binary("udiv", e.add(e.add(self.row_count, self.job_rows), -1), self.job_rows)
        jobs = e.mul(groups, chunks)
        for size in self.batch_sizes:
            jobs = e.mul(jobs, size)
        low, high = e.share(jobs)
        with e.loop(low, high) as job:
            indices, group, chunk = self._decoded(job, groups, chunks)
            first = e.mul(chunk, self.job_rows)
            self._job(indices, group, first, e.least(e.add(first, self.job_rows), self.row_count))
        return e.text()

    def _decoded(
        self, job: Register, groups: Register, chunks: Register
    ) -> tuple[list[Register], Register, Register]:
        """Return the batch indices, the group of panels and the chunk of rows of a job.

        Consecutive jobs share a group of panels if the product is `blocked`, else a chunk of rows.
        """
        e, blocked = self.e, self.product.blocked
        inner, outer = (chunks, groups) if blocked else (groups, chunks)
        rest = e.binary("udiv", job, inner)
        first, second = e.binary("urem", job, inner), e.binary("urem", rest, outer)
        indices = self._batch_indices(e.binary("udiv", rest, outer))
        return (indices, second, first) if blocked else (indices, first, second)

    def _batch_indices(self, batch: Register) -> list[Register]:
        e, found = self.e, list[Register]()
        for size in reversed(self.batch_sizes[1:]):
            found.append(e.binary("urem", batch, size))
            batch = e.binary("udiv", batch, size)
        return [batch, *found[::-1]] if self.batch_sizes else []

    def _batch_base(self, base: Register, strides: str, indices: Sequence[Register]) -> Register:
        for axis, index in enumerate(indices):
            base = self.e.offset(base, self.e.mul(index, self.arguments.number(strides, axis)))
        return base

    def _job(self, indices: list[Register], group: Register, first: Register, last: Register) -> None:
        """Emit the product of rows `first` to `last` and one group of panels: those of one tile."""
        e, product = self.e, self.product
        a = self._batch_base(self.a, "a_batch", indices)
        b = self._batch_base(self.b, "b_batch", indices)
        if self.streams is not None:
            self._streamed(self.streams, Job(indices, first, last, e.index(0)), group, a, b)
            return
        panel = e.mul(group, product.panels)
        if product.direct:
            self._direct(Job(indices, first, last, e.mul(panel, product.width)), a, b)
            return
        start = e.offset(b, e.mul(panel, self.panel_bytes))
        bases = [e.offset(start, e.mul(self.panel_bytes, p)) for p in range(product.panels)]
        if self.parameters is not None:
            self.parameters.begin(panel)
        job = Job(indices, first, last, e.mul(panel, product.width))
        if not product.blocked:
            ahead = e.offset(start, e.mul(self.panel_bytes, product.panels)) if product.prefetch else None
            bases = [self._unpacked(start)] if product.unpacks else bases
            self._tiles(job, a, bases, ahead, None, e.index(0))
            return
        with e.loop(e.index(0), self.blocks) as block:
            bytes_ = e.mul(self._lines, product.width * self.panel_terms.lane_bytes)
            here = e.offset(start, e.mul(block, bytes_))
            a = e.offset(a, e.mul(block, self.block_stride))
            ahead = e.offset(here, bytes_)
            if self.parameters is not None:
                self.parameters.load(block)
            if product.unpacks:
                here = self._unpacked(here)
            self._tiles(job, a, [here], ahead, block, self._steps_before(block))

    @property
    def _lines(self) -> Register:
        """The lines of a panel, or of a block of it, before it is unpacked."""
        steps = self.panel_terms.steps // self.terms.steps
        return self.steps if steps == 1 else self.e.binary("udiv", self.steps, self.e.index(steps))

    def _steps_before(self, block: Register) -> Register:
        """Return the steps of `k` before a block that belong to its sums: none if blocks have scales."""
        return self.e.index(0) if self.parameters is not None else self.e.mul(block, self.steps)

    def _streamed(self, streams: Streams, job: Job, strip: Register, a: Register, b: Register) -> None:
        """Emit the product of the rows of a job and a strip of columns that is read in place."""
        with self.e.loop(job.first, job.last, self.product.rows) as row:
            streams.emit(job, strip, b, self.rows.emit(a, row, job.last))

    def _direct(self, job: Job, a: Register, b: Register) -> None:
        """Emit the tiles of a job, with a copy of each block of `k` into panels in scratch memory."""
        e, product, depth = self.e, self.product, self.depths[-1]
        count = e.binary("udiv", e.add(depth, DIRECT_STEPS - 1), e.index(DIRECT_STEPS))
        count = e.greatest(count, e.index(1))  # if `k` is empty, the sums are 0
        self.last_block = e.add(count, -1)
        step = self.terms.lane_bytes if product.transposed else self.panel_bytes
        panel = product.direct_bytes // product.panels
        bases = [e.offset(self.body.own_scratch(), e.index(p * panel)) for p in range(product.panels)]
        with e.loop(e.index(0), count) as block:
            done = e.mul(block, DIRECT_STEPS)
            self.depths[-1] = e.least(e.binary("sub", depth, done), e.index(DIRECT_STEPS))
            self._copy(job, e.offset(b, e.mul(done, step)), bases)
            row = e.offset(a, e.mul(done, self.inner_stride or self.terms.factor_bytes))
            self._tiles(job, row, bases, None, block, done)

    def _copy(self, job: Job, source: Register, bases: Sequence[Register]) -> None:
        """Emit the copy of a block of `k` into panels; columns past the last one are 0."""
        e, product = self.e, self.product
        depth, lanes = self.depths[-1], product.nest.lanes
        matrix = PanelSource(product.element, lanes, source, self.panel_bytes, depth, self.columns)
        if not product.transposed:
            copy_rows(e, matrix, job.column, bases, product.width, whole=product.whole)
            return
        for p, base in enumerate(bases):
            copy_panel(e, matrix, e.add(job.column, p * product.width), product.width, base, across=True)

    def _unpacked(self, panel: Register) -> Register:
        """Emit the conversion of a panel, or a block of it, into scratch memory; return the address there."""
        e, product = self.e, self.product
        base = self.body.own_scratch()
        terms, lanes, fields = self.panel_terms, product.nest.lanes, self.panel_terms.steps
        size, row = lanes * self.terms.lane_bytes, product.width * self.terms.lane_bytes
        with e.loop(e.index(0), self._lines) as k:
            line = e.offset(panel, e.mul(k, product.width * terms.lane_bytes))
            places = [v * lanes * terms.lane_bytes for v in range(product.vectors)]
            loaded = [terms.column(e.offset(line, e.index(place))) for place in places]
            target = e.offset(base, e.mul(k, row * fields))
            for field in range(fields):
                for v, x in enumerate(self._numbers(terms, loaded, field)):
                    e.store(x, e.offset(target, e.index(field * row + v * size)), align=size)
        return base

    def _numbers(
        self, terms: Floats | Integers, loaded: Sequence[Register], field: int
    ) -> Sequence[Register]:
        """Return the factors at a place of the vectors that a line of a panel has, minus zero points."""
        columns = [terms.field(x, field) for x in loaded]
        if self.parameters is None or self.product.rounded:
            return columns
        return self.parameters.centred(columns)

    def _tiles(
        self, job: Job, a: Register, bases: Sequence[Register], ahead: Register | None,
        block: Register | None, done: Register,
    ) -> None:  # fmt: skip
        """Emit the tiles of a job for all of `k`, or for one block of it after `done` steps of `k`."""
        e, product = self.e, self.product
        lines = self._lines_a_step(job.first, job.last)
        with e.loop(job.first, job.last, product.rows) as row:
            number = e.binary("udiv", e.binary("sub", row, job.first), e.index(product.rows))
            rows = self.rows.emit(a, row, job.last)
            begin = self._begin(bases)
            sums = [[e.variable(x) for x in begin] for _ in rows.addresses]
            prefetching = self._prefetching(ahead, number, lines)
            totals = self._totals(number, sums, block)
            if self.parameters is not None and block is not None:
                self._add(sums, rows.addresses, bases, prefetching, totals, done)
                first = e.compare("icmp eq", block, e.index(0))
                self.parameters.folded(sums, self._waiting_place(number), first)
                with e.when(e.compare("icmp eq", block, self.last_block)):
                    self.epilogue.emit(job, rows, sums)
            elif self.parameters is not None:
                place = e.stack(product.tile_bytes)
                self.parameters.begin_rows([place[-1] for place in rows.places])
                self._add(sums, rows.addresses, bases, prefetching, totals, done, place)
                self.epilogue.emit(job, rows, self.parameters.totals(sums, place))
            elif block is None:
                self._add(sums, rows.addresses, bases, prefetching, totals, done)
                self.epilogue.emit(job, rows, sums)
            else:
                with self._waiting(number, sums, block):
                    self._add(sums, rows.addresses, bases, prefetching, totals, done)
                with e.when(e.compare("icmp eq", block, self.last_block)):
                    self.epilogue.emit(job, rows, sums)

    def _totals(self, tile: Register, sums: list[list[Variable]], block: Register | None) -> Totals | None:
        """Return the totals of a tile: on the stack, or after its accumulators in scratch memory."""
        e, product = self.e, self.product
        if not product.long:
            return None
        slots = [slot for row in sums for slot in row]
        if block is None:
            return Totals(e, slots, e.stack(product.tile_bytes))
        return Totals(e, slots, e.offset(self._waiting_place(tile), e.index(product.tile_bytes)))

    def _begin(self, bases: Sequence[Register]) -> list[Register]:
        """Return the initial accumulators of a row of a tile."""
        e, product = self.e, self.product
        if self.column_factor is None:
            return [e.constant(self.vector, 0)] * self.vectors
        size = product.nest.lanes * 4
        sums = [
            e.load(e.offset(base, e.index(v * size)), self.vector, align=size)
            for base in bases
            for v in range(product.vectors)
        ]
        return [e.binary("mul", x, self.column_factor) for x in sums]

    @contextlib.contextmanager
    def _waiting(self, tile: Register, sums: list[list[Variable]], block: Register) -> Generator[None]:
        """Emit loads of accumulators before each block but the first, and stores after all but the last."""
        e = self.e
        kept = self._kept(tile, sums)
        with e.when(e.compare("icmp sgt", block, e.index(0))):
            for slot, address in kept:
                e.assign(slot, e.load(address, self.vector))
        yield  # ruff: ignore[fallible-context-manager]  an error ends the emission
        with e.when(e.compare("icmp slt", block, self.last_block)):
            for slot, address in kept:
                e.store(e.get(slot), address)

    def _kept(self, tile: Register, sums: list[list[Variable]]) -> list[tuple[Variable, Register]]:
        """Return each accumulator of a tile with its address in scratch memory between blocks of `k`."""
        e, size = self.e, self.product.nest.lanes * element_bytes(self.product.element)
        slots = [slot for row in sums for slot in row]
        base = self._waiting_place(tile)
        return [(slot, e.offset(base, e.index(n * size))) for n, slot in enumerate(slots)]

    def _waiting_place(self, tile: Register) -> Register:
        """Return the scratch memory of a tile, after that of converted or copied panels."""
        e, base = self.e, self.body.own_scratch()
        if self.product.unpacks:
            base = e.offset(base, e.mul(self.steps, self.product.width * self.terms.lane_bytes))
        if self.product.direct:
            base = e.offset(base, e.index(self.product.direct_bytes))
        return e.offset(base, e.mul(tile, self.product.waiting_bytes))

    def _lines_a_step(self, first: Register, last: Register) -> Register:
        """Return the bytes of the next panels that a tile prefetches at each step of `k`."""
        e, product = self.e, self.product
        blocks = e.binary(
            "udiv", e.add(e.binary("sub", last, first), product.rows - 1), e.index(product.rows)
        )
        step = product.width * product.panels * self.panel_terms.lane_bytes
        return e.binary("udiv", e.index(step), blocks)

    def _prefetching(
        self, ahead: Register | None, block: Register, lines: Register
    ) -> tuple[Register, Register] | None:
        if ahead is None:
            return None
        return self.e.offset(ahead, self.e.mul(self.e.mul(block, lines), self.steps)), lines

    def _add(
        self, sums: list[list[Variable]], rows: Sequence[Register], bases: Sequence[Register],
        ahead: tuple[Register, Register] | None, totals: Totals | None, done: Register,
        folded: Register | None = None,
    ) -> None:  # fmt: skip
        """Emit the loops over `k` that add to the accumulators of each row, after `done` steps of `k`."""
        e, product, depth = self.e, self.product, self.depths[-1]
        starts = [e.offset(base, e.index(self.head)) for base in bases]
        terms = self.terms
        full = e.binary("udiv", depth, e.index(terms.steps)) if terms.steps > 1 else depth
        with self._outer_depth() as (before, moved):

            def add(first: Register, end: Register) -> None:
                with e.loop(first, end) as inner:
                    k = e.add(before, inner) if before is not None else inner
                    loaded = self._columns(starts, k)
                    self._prefetch(ahead, starts, k)
                    along = e.mul(inner, self.inner_stride or terms.row_bytes)
                    along = e.add(moved, along) if moved is not None else along
                    for field, offset in enumerate(terms.offsets):
                        columns = self._factors(loaded, field)
                        place = e.add(along, offset)
                        for row, accumulators in zip(rows, sums, strict=True):
                            x = terms.factor(e.offset(row, place))
                            self._accumulate(accumulators, x, columns)

            if folded is not None:  # the sums are the totals of the blocks before
                self._restart(sums)
            if totals is None:
                add(e.index(0), full)
            elif self.parameters is not None:
                totals.in_parts(e.index(0), full, full, add)
            else:
                start = done if before is None else e.add(done, before)
                totals.in_parts(start, full, self.depth, add)
            if folded is not None and self.parameters is not None:
                first = e.compare("icmp eq", self.parameters.block, e.index(0))
                self.parameters.folded(sums, folded, first)
            if product.ragged:
                self._add_rest(sums, rows, starts, full, before, moved)

    def _restart(self, sums: list[list[Variable]]) -> None:
        for slot in (slot for row in sums for slot in row):
            self.e.assign(slot, self.e.constant(slot.kind, 0))

    def _prefetch(
        self, ahead: tuple[Register, Register] | None, starts: Sequence[Register], k: Register
    ) -> None:
        """Emit the prefetches at line `k`.

        A tile of one row reads its panels at the speed of memory: it prefetches their next lines. With more
        rows, it prefetches a part of the next panels.
        """
        e, product = self.e, self.product
        if ahead is not None and product.rows > 1:
            e.prefetch(e.offset(ahead[0], e.mul(k, ahead[1])))
        elif ahead is not None:
            line = product.width * self.terms.lane_bytes
            for start, place in itertools.product(starts, range(0, line, _CACHE_LINE)):
                e.prefetch(e.offset(start, e.add(e.mul(k, line), _NEAR + place)))

    def _factors(self, loaded: Sequence[Register], field: int) -> Sequence[Register]:
        """Return the factors of a step of `k`; if panels are unpacked once, these have no zero points."""
        return loaded if self.product.unpacks else self._numbers(self.terms, loaded, field)

    def _columns(self, starts: Sequence[Register], k: Register) -> list[Register]:
        """Return the vectors of all panels in line `k`, converted if they are narrow floats or bytes."""
        e, product, terms = self.e, self.product, self.terms
        size, found = product.nest.lanes * terms.lane_bytes, list[Register]()
        for start in starts:
            here = e.offset(start, e.mul(k, product.width * terms.lane_bytes))
            found += [terms.column(e.offset(here, e.index(v * size))) for v in range(product.vectors)]
        return found

    def _accumulate(self, sums: Sequence[Variable], x: Register, columns: Sequence[Register]) -> None:
        for slot, y in zip(sums, columns, strict=True):
            self.e.assign(slot, self.terms.add(x, y, self.e.get(slot)))

    def _add_rest(
        self, sums: list[list[Variable]], rows: Sequence[Register], starts: Sequence[Register],
        full: Register, before: Register | None, moved: Register | None,
    ) -> None:  # fmt: skip
        """Emit the last group of the last axis of `k`, if it is partial."""
        e, terms, done = self.e, self.terms, self.e.mul(full, self.product.group)
        if not isinstance(terms, Integers):
            raise TypeError("floats have no groups")
        left = e.binary("sub", self.depths[-1], done)
        with e.when(e.compare("icmp sgt", left, e.index(0))):
            columns = self._columns(starts, e.add(before, full) if before is not None else full)
            along = e.add(moved, done) if moved is not None else done
            for row, accumulators in zip(rows, sums, strict=True):
                x = terms.rest(e.offset(row, along), e.add(left, -1))
                self._accumulate(accumulators, x, columns)

    @contextlib.contextmanager
    def _outer_depth(self) -> Generator[tuple[Register | None, Register | None]]:
        """Emit the loops over the outer axes of `k`; yield the steps of `k` before, and the offset in `a`."""
        e = self.e
        with contextlib.ExitStack() as loops:
            before: Register | None = None
            moved: Register | None = None
            for size, stride in zip(self.depths, self.depth_strides, strict=False):
                place = loops.enter_context(e.loop(e.index(0), size))
                if self.parameters is not None:
                    self.parameters.load(place)
                step = e.mul(place, stride)
                before = place if before is None else e.add(e.mul(before, size), place)
                moved = step if moved is None else e.add(moved, step)
            if before is not None:
                before = e.mul(before, self.steps_inside)
            yield before, moved
