"""Matrix products: tiles of rows by packed panels of columns, with an epilogue computed on the tile.

`b` lies in panels: `[panel][k][width]`, the columns of the last one filled up with zeros. Every sum runs over
`k` in order in one accumulator, so that a row has the same bits whatever tile, batch or thread computes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.kernels._body import (
    Body,
    Point,
    element_bytes,
    kind_of,
    pointer_at,
)
from sabir.compilation.kernels._emitter import INDEX, Emitter, Kind, Register, Variable
from sabir.compilation.kernels._jobs import lanes_before
from sabir.compilation.kernels._nest import Accumulated, Apply, Nest

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNROLLED = 6  # steps of an epilogue that is emitted for each vector of a tile


@dataclass(frozen=True, slots=True)
class Product:
    """A product whose epilogue is a nest over `batch` axes, rows and columns.

    A tile has `rows` rows by `panels` panels of `vectors` vectors. With `prefetch` the next panels are
    brought into the cache while these are computed: weights come from memory.
    """

    nest: Nest
    element: str
    rows: int
    vectors: int
    panels: int = 1
    prefetch: bool = True

    @property
    def batch(self) -> int:
        """The number of batch axes."""
        return self.nest.axes - 2

    @property
    def width(self) -> int:
        """The columns of a panel."""
        return self.vectors * self.nest.lanes

    def __str__(self) -> str:
        tile = f"tile {self.rows}x{self.panels}x{self.vectors}{' prefetch' if self.prefetch else ''}"
        return f"product {self.element} {tile}\n{self.nest}"


class ProductLayout:
    """Where the arguments of a product lie, after those of its nest.

    `a` and `b`: buffer and offset, then the stride of a row of `a` in bytes, the bytes of a panel of `b`, the
    size of `k`, the rows of a job, and the strides of the batch axes of `a` and of `b`, in bytes.
    """

    def __init__(self, product: Product, nest_count: int) -> None:
        self.a, self.b = nest_count, nest_count + 2
        self.row_stride, self.panel_bytes, self.depth, self.job_rows = range(nest_count + 4, nest_count + 8)
        self.a_batch = nest_count + 8
        self.b_batch = self.a_batch + product.batch
        self.count = self.b_batch + product.batch


def product_text(product: Product) -> str:
    """Return the LLVM module of a product's kernel."""
    return _Emission(product).text()


class _Emission:
    def __init__(self, product: Product) -> None:
        self.product, self.e = product, Emitter()
        self.body = Body(self.e, product.nest)
        self.layout = ProductLayout(product, self.body.layout.count)
        e, layout = self.e, self.layout
        self.a, self.b = self.body.pointer(layout.a), self.body.pointer(layout.b)
        self.row_stride, self.panel_bytes = e.argument(layout.row_stride), e.argument(layout.panel_bytes)
        self.depth, self.job_rows = e.argument(layout.depth), e.argument(layout.job_rows)
        *self.batch_sizes, self.row_count, self.columns = self.body.sizes
        self.vector = kind_of(product.element, product.nest.lanes)

    def text(self) -> str:
        e, product = self.e, self.product
        width = product.width * product.panels
        groups = e.binary("udiv", e.add(self.columns, width - 1), e.index(width))
        chunks = e.binary("udiv", e.add(e.add(self.row_count, self.job_rows), -1), self.job_rows)
        jobs = e.mul(groups, chunks)
        for size in self.batch_sizes:
            jobs = e.mul(jobs, size)
        low, high = e.share(jobs)
        with e.loop(low, high) as job:
            rest = e.binary("udiv", job, groups)
            group, chunk = e.binary("urem", job, groups), e.binary("urem", rest, chunks)
            indices = self._batch_indices(e.binary("udiv", rest, chunks))
            first = e.mul(chunk, self.job_rows)
            self._job(indices, group, first, e.least(e.add(first, self.job_rows), self.row_count))
        return e.text()

    def _batch_indices(self, batch: Register) -> list[Register]:
        e, found = self.e, list[Register]()
        for size in reversed(self.batch_sizes[1:]):
            found.append(e.binary("urem", batch, size))
            batch = e.binary("udiv", batch, size)
        return [batch, *found[::-1]] if self.batch_sizes else []

    def _batch_base(self, base: Register, place: int, indices: Sequence[Register]) -> Register:
        for axis, index in enumerate(indices):
            base = self.e.offset(base, self.e.mul(index, self.e.argument(place + axis)))
        return base

    def _job(self, indices: list[Register], group: Register, first: Register, last: Register) -> None:
        """Emit the rows from `first` to `last` by one group of panels."""
        e, product = self.e, self.product
        a = self._batch_base(self.a, self.layout.a_batch, indices)
        b = self._batch_base(self.b, self.layout.b_batch, indices)
        panel = e.mul(group, product.panels)
        start = e.offset(b, e.mul(panel, self.panel_bytes))
        bases = [e.offset(start, e.mul(self.panel_bytes, p)) for p in range(product.panels)]
        column = e.mul(panel, product.width)
        ahead = e.offset(start, e.mul(self.panel_bytes, product.panels)) if product.prefetch else None
        lines = self._lines_a_step(first, last)
        with e.loop(first, last, product.rows) as row:
            block = e.binary("udiv", e.binary("sub", row, first), e.index(product.rows))
            rows = [
                e.offset(a, e.mul(e.least(e.add(row, m), e.add(last, -1)), self.row_stride))
                for m in range(product.rows)
            ]
            sums = self._sums(rows, bases, self._prefetching(ahead, block, lines))
            self._epilogue(indices, row, last, column, sums)

    def _lines_a_step(self, first: Register, last: Register) -> Register:
        """Return how many bytes of the next panels each step of `k` brings in."""
        e, product = self.e, self.product
        blocks = e.binary(
            "udiv", e.add(e.binary("sub", last, first), product.rows - 1), e.index(product.rows)
        )
        step = product.width * product.panels * element_bytes(product.element)
        return e.binary("udiv", e.index(step), blocks)

    def _prefetching(
        self, ahead: Register | None, block: Register, lines: Register
    ) -> tuple[Register, Register] | None:
        if ahead is None:
            return None
        return self.e.offset(ahead, self.e.mul(self.e.mul(block, lines), self.depth)), lines

    def _sums(
        self, rows: Sequence[Register], bases: Sequence[Register], ahead: tuple[Register, Register] | None
    ) -> list[list[Variable]]:
        """Emit the loop over `k`; return the accumulators of each row."""
        e, product = self.e, self.product
        size, lanes = element_bytes(product.element), product.nest.lanes
        zero = e.constant(self.vector, 0)
        count = product.panels * product.vectors
        sums = [[e.variable(zero) for _ in range(count)] for _ in rows]
        step = product.width * size
        with e.loop(e.index(0), self.depth) as k:
            columns: list[Register] = []
            for base in bases:
                here = e.offset(base, e.mul(k, step))
                columns += [
                    e.load(e.offset(here, e.index(v * lanes * size)), self.vector, align=64)
                    for v in range(product.vectors)
                ]
            if ahead is not None:
                e.prefetch(e.offset(ahead[0], e.mul(k, ahead[1])))
            for row, accumulators in zip(rows, sums, strict=True):
                x = e.load(e.offset(row, e.mul(k, size)), Kind(self.vector.scalar))
                wide = e.splat(x, lanes)
                for slot, y in zip(accumulators, columns, strict=True):
                    e.assign(slot, e.fma(wide, y, e.get(slot)))
        return sums

    # ------------------------------------------------------------ the results of a tile

    def _epilogue(
        self,
        indices: list[Register],
        row: Register,
        last: Register,
        column: Register,
        sums: list[list[Variable]],
    ) -> None:
        e, product = self.e, self.product
        lanes = product.nest.lanes
        count = product.panels * product.vectors
        if sum(isinstance(s, Apply) for s in product.nest.steps) > _UNROLLED:
            self._looped(indices, row, last, column, sums)
            return
        for m in range(product.rows):
            here = e.add(row, m)
            with e.when(e.compare("icmp slt", here, last)):
                for v in range(count):
                    self._store(indices, here, e.add(column, v * lanes), e.get(sums[m][v]))

    def _looped(
        self,
        indices: list[Register],
        row: Register,
        last: Register,
        column: Register,
        sums: list[list[Variable]],
    ) -> None:
        """Emit a long epilogue once, in a loop over the vectors of the tile, which wait on the stack."""
        e, product = self.e, self.product
        lanes, count = product.nest.lanes, product.panels * product.vectors
        size = lanes * element_bytes(product.element)
        tile = e.stack(product.rows * count * size)
        for m in range(product.rows):
            for v in range(count):
                e.store(e.get(sums[m][v]), e.offset(tile, e.index((m * count + v) * size)), align=64)
        rows = e.least(e.index(product.rows), e.binary("sub", last, row))
        with e.loop(e.index(0), e.mul(rows, count)) as place:
            m, v = e.binary("udiv", place, e.index(count)), e.binary("urem", place, e.index(count))
            x = e.load(e.offset(tile, e.mul(place, size)), self.vector, align=64)
            self._store(indices, e.add(row, m), e.add(column, e.mul(v, lanes)), x)

    def _store(self, indices: list[Register], row: Register, column: Register, x: Register) -> None:
        e, nest, lanes = self.e, self.product.nest, self.product.nest.lanes
        point = Point([*indices, row, column], lanes, lanes_before(e, column, self.columns, lanes))
        for number, step in enumerate(nest.steps):
            if isinstance(step, Accumulated):
                point.values[number] = x
        for access, number in nest.stores:
            self.body.write(access, self.body.value(number, point), point)


# ---------------------------------------------------------------- packing


@dataclass(frozen=True, slots=True)
class Packing:
    """The copy of a matrix `[batch..., k, n]` into panels; with `next_column` columns lie side by side."""

    element: str
    batch: int
    width: int
    lanes: int
    next_column: bool

    def __str__(self) -> str:
        order = "rows" if self.next_column else "columns"
        return f"pack {self.element} width {self.width} lanes {self.lanes} batch {self.batch} from {order}"


def packing_text(packing: Packing) -> str:
    """Return the LLVM module of a packing kernel.

    Arguments: the sizes of the batch axes, `k`, `n`; source buffer and offset, its strides in bytes along the
    batch axes, `k` and `n`; target buffer and offset, the bytes of a batch item of the target.
    """
    return _PackingEmission(packing).text()


class _PackingEmission:
    def __init__(self, packing: Packing) -> None:
        self.packing, self.e = packing, Emitter()
        e, count = self.e, packing.batch
        self.sizes = [e.argument(axis) for axis in range(count)]
        self.depth, self.columns = e.argument(count), e.argument(count + 1)
        self.source = pointer_at(e, count + 2)
        self.strides = [e.argument(count + 4 + axis) for axis in range(count)]
        self.down, self.across = e.argument(2 * count + 4), e.argument(2 * count + 5)
        self.target, self.item = pointer_at(e, 2 * count + 6), e.argument(2 * count + 8)
        self.element_bytes = element_bytes(packing.element)

    def text(self) -> str:
        """Return the module: every job packs one panel."""
        e, width = self.e, self.packing.width
        panels = e.binary("udiv", e.add(self.columns, width - 1), e.index(width))
        jobs = panels
        for count in self.sizes:
            jobs = e.mul(jobs, count)
        low, high = e.share(jobs)
        with e.loop(low, high) as job:
            panel, batch = e.binary("urem", job, panels), e.binary("udiv", job, panels)
            to = e.offset(self.target, e.mul(batch, self.item))
            to = e.offset(to, e.mul(e.mul(panel, width * self.element_bytes), self.depth))
            self._panel(self._matrix(batch), e.mul(panel, width), to)
        return e.text()

    def _matrix(self, batch: Register) -> Register:
        """Return where the matrix of one item of the batch begins."""
        e, base = self.e, self.source
        for count, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            base = e.offset(base, e.mul(e.binary("urem", batch, count), stride))
            batch = e.binary("udiv", batch, count)
        return base

    def _panel(self, matrix: Register, column: Register, to: Register) -> None:
        e, packing = self.e, self.packing
        with e.loop(e.index(0), self.depth) as k:
            row = e.offset(matrix, e.mul(k, self.down))
            line = e.offset(to, e.mul(k, packing.width * self.element_bytes))
            for v in range(0, packing.width, packing.lanes):
                x = self._vector(row, e.add(column, v))
                e.store(x, e.offset(line, e.index(v * self.element_bytes)), align=64)

    def _vector(self, row: Register, column: Register) -> Register:
        """Return some columns of a row; those past the end are 0."""
        e, lanes = self.e, self.packing.lanes
        kind = kind_of(self.packing.element, lanes)
        mask = lanes_before(e, column, self.columns, lanes)
        start = e.offset(row, e.mul(column, self.across))
        if self.packing.next_column:
            return e.load(start, kind, mask)
        steps = Register(f"<{', '.join(f'i64 {n}' for n in range(lanes))}>", INDEX._replace(lanes=lanes))
        offsets = e.binary("mul", e.splat(self.across, lanes), steps)
        return e.gather(e.value(Kind("ptr", lanes), f"getelementptr i8, {start}, {offsets}"), kind, mask)
