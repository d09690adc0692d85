"""Convolutions of 3x3 windows with fewer multiplications: Winograd's F(2x2, 3x3) and F(4x4, 3x3).

F(m x m, 3x3) computes a tile of m x m results from (m + 2) x (m + 2) elements of each channel. Linear
transforms of these elements and of the filters give (m + 2)**2 factors each; another one transforms their
products to the results. F(2x2) has 16 multiplications instead of 36, F(4x4) 36 instead of 144, with larger
rounding errors. The channels are summed between the transforms: each of the (m + 2)**2 places is a matrix
product `[tiles, channels] x [channels, filters]`. A job transforms its tiles into scratch memory; then, for
each panel of filters, it computes the matrix products of all places, and the results with their epilogue.

An infinity or NaN in a tile would make other results of the tile NaN that do not depend on it. So a NaN is an
error of the run, which the interpreter repeats.

`b` is `[panel][place][channels][width]`. A result depends only on its own tile, and each product sums the
channels in order, or in fixed parts, so a tile has the same bits in every job, batch and thread.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body, kind_of
from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register
from sabir.compilation.backends.cpu.emit.epilogue import Results
from sabir.compilation.backends.cpu.emit.jobs import digits, lanes_before, product_of
from sabir.compilation.backends.cpu.emit.terms import Floats
from sabir.compilation.backends.cpu.products.totals import Totals
from sabir.compilation.backends.cpu.products.winograd_transforms import TAPS, transform_of
from sabir.compilation.plan.signature import KernelSignature, declared
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from sabir.compilation.backends.cpu.emit.nest import Nest

GAP = 64  # bytes of padding between transformed tiles, which then map to different sets of the cache


@dataclass(frozen=True, slots=True)
class Winograd:
    """A convolution whose nest has the axes [batch..., height, width, columns].

    An image tile has `results` results along each axis, 2 or 4. A GEMM tile is `rows` image tiles by one
    panel of `vectors` vectors. With `whole`, the columns fill all panels; with `long`, many channels are
    summed in parts, see `products/totals`. Scratch memory is the transformed elements
    `[places][job_tiles][channels]`, then the products `[job_tiles + rows][places][width]`.
    """

    nest: Nest
    element: str
    rows: int
    vectors: int
    whole: bool = False
    results: int = 2
    long: bool = False

    @property
    def signature(self) -> KernelSignature:
        """The arguments: those of the nest, both operands, and the number of tiles of a job."""
        return declared(
            nest=self.nest.signature, a="tensor", b="tensor", row_strides=("stride", self.row_axes),
            panel_bytes="bytes", channels="size", job_tiles="size",
        )  # fmt: skip

    @property
    def side(self) -> int:
        """The elements that a tile reads along an axis."""
        return self.results + TAPS - 1

    @property
    def places(self) -> int:
        """The products of a tile and one filter, for each channel."""
        return places_of(self.results)

    @property
    def row_axes(self) -> int:
        """The number of axes of rows."""
        return self.nest.axes - 1

    def __str__(self) -> str:
        tile = f"tile {self.rows}x{self.vectors}{' whole' if self.whole else ''}"
        tile += f" results {self.results}x{self.results}{' long' if self.long else ''}"
        return f"winograd {self.element} {tile} rows {self.row_axes}\n{self.nest}"


def places_of(results: int) -> int:
    """Return the number of products of a tile, for `results` results along an axis."""
    return (results + TAPS - 1) ** 2


def winograd_text(spec: Winograd) -> str:
    """Return the LLVM module of a convolution by Winograd's algorithm."""
    return _WinogradEmitter(spec).text()


class _WinogradEmitter:
    def __init__(self, spec: Winograd) -> None:
        self.spec, self.e = spec, Emitter(opaque_loops=True)
        self.transform = transform_of(spec.results)
        e, arguments = self.e, Arguments(self.e, spec.signature)
        self.body = Body(spec.nest, arguments.group("nest"))
        self.a, self.b = arguments.pointer("a"), arguments.pointer("b")
        self.strides = arguments.numbers("row_strides")
        self.panel_bytes, self.channels = arguments.number("panel_bytes"), arguments.number("channels")
        self.job_tiles = arguments.number("job_tiles")
        *batch, self.height, self.width = self.body.sizes[:-1]
        self.columns = self.body.sizes[-1]
        self.counts = [*batch, *(self._up(size, spec.results) for size in (self.height, self.width))]
        self.lanes, self.size = spec.nest.lanes, element_bytes(spec.element)
        self.vector = kind_of(spec.element, self.lanes)
        self.panel = spec.vectors * self.lanes
        self.terms = Floats(e, spec.element, "", self.lanes)
        self.results = Results(self.body, self.columns, whole=spec.whole)
        self.line = e.add(e.mul(self._up(self.channels, self.lanes), self.lanes * self.size), GAP)
        self.place_bytes = e.mul(self.line, self.job_tiles)
        self.transformed = self.body.own_scratch()
        self.products = e.offset(self.transformed, e.mul(self.place_bytes, spec.places))
        self.found = e.stack(spec.results**2 * self.panel * self.size)

    def _up(self, count: Register, step: int) -> Register:
        return self.e.binary("udiv", self.e.add(count, step - 1), self.e.index(step))

    def text(self) -> str:
        """Return the LLVM module: each job computes `job_tiles` tiles."""
        e = self.e
        count = product_of(e, self.counts)
        jobs = e.binary("udiv", e.add(e.add(count, self.job_tiles), -1), self.job_tiles)
        low, high = e.share(jobs)
        with e.loop(low, high) as job:
            first = e.mul(job, self.job_tiles)
            number = e.least(self.job_tiles, e.binary("sub", count, first))
            with e.loop(e.index(0), number) as tile:
                self._transform(digits(e, e.add(first, tile), self.counts), tile)
            panels = self._up(self.columns, self.panel)
            with e.loop(e.index(0), panels) as panel:
                self._multiply(e.offset(self.b, e.mul(panel, self.panel_bytes)), number)
                self.results.begin()
                with e.loop(e.index(0), number) as tile:
                    self._combine(digits(e, e.add(first, tile), self.counts), tile, e.mul(panel, self.panel))
        return e.text()

    # ------------------------------------------------------------ the transformed tiles

    def _transform(self, place: Sequence[Register], tile: Register) -> None:
        """Emit the transform of all channels of tile number `tile` of a job, at `place` in the image."""
        e, corner = self.e, self.a
        *batch, i, j = place
        for index, stride in zip(batch, self.strides, strict=False):
            corner = e.offset(corner, e.mul(index, stride))
        down = self._along(i, self.height, self.strides[-2])
        across = self._along(j, self.width, self.strides[-1])
        points = [[e.offset(e.offset(corner, y), x) for x in across] for y in down]
        to = e.offset(self.transformed, e.mul(tile, self.line))
        whole = e.binary("and", self.channels, e.index(-self.lanes))
        with e.loop(e.index(0), whole, self.lanes) as channel:
            self._transform_vector(points, to, channel, None)
        with e.when(e.compare("icmp slt", whole, self.channels)):
            self._transform_vector(points, to, whole, lanes_before(e, whole, self.channels, self.lanes))

    def _along(self, index: Register, size: Register, stride: Register) -> list[Register]:
        """Return byte offsets of the elements of a tile; those past the image repeat its last one."""
        e, first, last = self.e, self.e.mul(index, self.spec.results), self.e.add(size, TAPS - 2)
        return [e.mul(e.least(e.add(first, n), last), stride) for n in range(self.spec.side)]

    def _transform_vector(
        self, points: Sequence[Sequence[Register]], to: Register, channel: Register, mask: Register | None
    ) -> None:
        e = self.e
        here = e.mul(channel, self.size)
        rows = [[e.load(e.offset(point, here), self.vector, mask) for point in row] for row in points]
        columns = [self.transform.image(e, column) for column in zip(*rows, strict=True)]
        to = e.offset(to, here)
        for y, row in enumerate(zip(*columns, strict=True)):
            for x, value in enumerate(self.transform.image(e, row)):
                e.store(value, e.offset(to, e.mul(self.place_bytes, y * self.spec.side + x)))

    # ------------------------------------------------------------ the products

    def _multiply(self, panel: Register, number: Register) -> None:
        """Emit the matrix products of all tiles of a job by a panel, with prefetches of the next matrix."""
        e, rows = self.e, self.spec.rows
        bytes_ = e.mul(self.channels, self.panel * self.size)
        lines = e.binary("udiv", e.index(self.panel * self.size), self._up(number, rows))
        with e.loop(e.index(0), e.index(self.spec.places)) as place:
            matrix = e.offset(panel, e.mul(place, bytes_))
            tiles = e.offset(self.transformed, e.mul(place, self.place_bytes))
            to = e.offset(self.products, e.mul(place, self.panel * self.size))
            with e.loop(e.index(0), number, rows) as row:
                done = e.mul(e.mul(e.binary("udiv", row, e.index(rows)), lines), self.channels)
                ahead = e.offset(e.offset(matrix, bytes_), done)
                lasts = [e.least(e.add(row, m), e.add(number, -1)) for m in range(rows)]
                sums = self._sums([e.offset(tiles, e.mul(n, self.line)) for n in lasts], matrix, ahead, lines)
                self._keep(sums, e.offset(to, e.mul(row, self.spec.places * self.panel * self.size)))

    def _sums(
        self, rows: Sequence[Register], matrix: Register, ahead: Register, lines: Register
    ) -> list[list[Register]]:
        """Emit the sums of a GEMM tile over all channels; each step prefetches a part of the next matrix."""
        e, step = self.e, self.lanes * self.size
        zero = e.constant(self.vector, 0)
        sums = [[e.variable(zero) for _ in range(self.spec.vectors)] for _ in rows]

        def add(first: Register, end: Register) -> None:
            with e.loop(first, end) as k:
                line = e.offset(matrix, e.mul(k, self.panel * self.size))
                columns = [
                    self.terms.column(e.offset(line, e.index(v * step))) for v in range(self.spec.vectors)
                ]
                e.prefetch(e.offset(ahead, e.mul(k, lines)))
                for row, slots in zip(rows, sums, strict=True):
                    x = self.terms.factor(e.offset(row, e.mul(k, self.size)))
                    for slot, y in zip(slots, columns, strict=True):
                        e.assign(slot, self.terms.add(x, y, e.get(slot)))

        if self.spec.long:
            every = [slot for slots in sums for slot in slots]
            totals = Totals(e, every, e.stack(len(every) * step))
            totals.in_parts(e.index(0), self.channels, self.channels, add)
        else:
            add(e.index(0), self.channels)
        return [[e.get(slot) for slot in slots] for slots in sums]

    def _keep(self, sums: Sequence[Sequence[Register]], to: Register) -> None:
        e, step = self.e, self.lanes * self.size
        for m, row in enumerate(sums):
            for v, x in enumerate(row):
                e.store(x, e.offset(to, e.index((m * self.spec.places * self.spec.vectors + v) * step)))

    # ------------------------------------------------------------ the results

    def _combine(self, place: Sequence[Register], tile: Register, column: Register) -> None:
        """Emit the results of a tile from its products, the check for NaN, and the epilogue."""
        e, spec, step = self.e, self.spec, self.lanes * self.size
        source = e.offset(self.products, e.mul(tile, spec.places * self.panel * self.size))
        total = e.constant(self.vector, 0)
        for v in range(spec.vectors):
            products = [self._product(source, n, v) for n in range(spec.places)]
            columns = [self.transform.folded(e, products[n :: spec.side]) for n in range(spec.side)]
            for y, row in enumerate(zip(*columns, strict=True)):
                for x, value in enumerate(self.transform.folded(e, row)):
                    to = e.index(((y * spec.results + x) * spec.vectors + v) * step)
                    e.store(value, e.offset(self.found, to))
                    total = e.binary("fadd", total, value)
        self.body.fail_where(e.any(e.compare("fcmp uno", total, total)))
        *batch, i, j = place
        vectors = self.results.vectors(column, spec.vectors)
        with self._inside(i, self.height) as (y, down), self._inside(j, self.width) as (x, across):
            line = e.offset(self.found, e.mul(e.add(e.mul(y, spec.results), x), self.panel * self.size))
            for v, vector in enumerate(vectors):
                value = e.load(e.offset(line, e.index(v * step)), self.vector)
                self.results.store([*batch, down, across], vector, value)

    def _product(self, source: Register, place: int, v: int) -> Register:
        number = (place * self.spec.vectors + v) * self.lanes * self.size
        return self.e.load(self.e.offset(source, self.e.index(number)), self.vector)

    @contextlib.contextmanager
    def _inside(self, tile: Register, size: Register) -> Generator[tuple[Register, Register]]:
        """Emit a loop over the results of a tile along an axis that are inside the image."""
        e, results = self.e, self.spec.results
        first = e.mul(tile, results)
        with e.loop(e.index(0), e.least(e.index(results), e.binary("sub", size, first))) as n:
            yield n, e.add(first, n)
