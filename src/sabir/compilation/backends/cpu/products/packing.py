"""The packing kernel: it copies the second operand of a product into panels, in the order of the tiles."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.transposes import transposed
from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import kind_of
from sabir.compilation.backends.cpu.emit.casts import SMALL_INTEGERS, cast
from sabir.compilation.backends.cpu.emit.emitter import Emitter, Kind, Register, Variable
from sabir.compilation.backends.cpu.emit.jobs import digits, lanes_before, product_of
from sabir.compilation.backends.cpu.products.panel_copies import PanelSource, gathered, strip
from sabir.compilation.backends.cpu.products.winograd_transforms import TAPS, transform_of
from sabir.compilation.plan.signature import KernelSignature, declared, of_kind
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.terms import Groups

_WORD_BYTES = 4
_ROWS = 8  # of a job of `_RowEmission`


@dataclass(frozen=True, slots=True)
class Packing:
    """The copy of matrices `[batch..., k..., n]` into panels `[batch][panel][k][width]` of `element`.

    - `depth_axes` is the number of axes of `k`. If `width` is 0, it is an argument: one kernel then packs
      the constants of many products, so a first run compiles fewer kernels.
    - `next_column`: columns have stride 1. `next_row`: the last axis of `k` has stride 1, and square tiles
      are transposed in registers.
    - `group` > 1, for 8-bit integers: a panel is the sums of its columns, then `[k / group][width][group]`.
      Groups are along the last `run` axes of `k` as one axis, padded with zeros.
    - `winograd`: 3x3 filters are transformed for F(m x m, 3x3), m = `winograd`: a panel has one matrix
      `[channels][width]` for each of the (m + 2)**2 products.
    - `fields` > 1: words of 32 bits pack so many integers along the last axis of `k`, the first one in the
      lowest bits: panels are `[k / fields][width]`.
    - `taps` > 0: the last axis of `k` has a stride of so many elements, between which those of all other axes
      are side by side, as in filters `[n, channels, taps...]`. Square tiles of these runs are transposed.
    - `order`: the axes of `k` in the order of the loops, outer ones first; () is the order of the panels. An
      axis with a large stride is outside, so each cache line is read once.
    - `source`: the element type of the matrices, if they are converted. Without it, uint8 is offset by -128
      and stored as int8.
    """

    element: str
    batch: int
    width: int
    lanes: int
    next_column: bool
    depth_axes: int = 1
    group: Groups = 1
    run: int = 1
    next_row: bool = False
    winograd: int = 0
    source: str = ""
    fields: int = 1
    order: tuple[int, ...] = ()
    taps: int = 0

    @property
    def read(self) -> str:
        """The element type of the matrices."""
        return self.source or self.element

    @property
    def in_order(self) -> bool:
        """Whether each row is read once and as a whole, for all panels: contiguous reads are fast."""
        return self.next_column and self.width > 0 and self.depth_axes == 1 and self.group == 1

    @property
    def by_elements(self) -> bool:
        """Whether vectors of columns are copied one by one, in any order of the axes of `k`."""
        tiled = self.next_row or self.taps > 0 or self.in_order
        return self.width > 0 and self.group == self.fields == 1 and not self.winograd and not tiled

    @property
    def signature(self) -> KernelSignature:
        """The arguments: the sizes and strides of the matrices, and the addresses of source and target.

        `item` is the bytes of the panels of one matrix of the batch.
        """
        return declared(
            batch=("size", self.batch), depths=("size", self.depth_axes), columns="size", source="tensor",
            batch_strides=("stride", self.batch), depth_strides=("stride", self.depth_axes),
            column_stride="stride", target="tensor", item="bytes",
            **of_kind("size", [] if self.width else ["width"]),
        )  # fmt: skip

    @property
    def loops(self) -> tuple[int, int]:
        """The first word of the arguments with sizes of loops, and the word after the last one."""
        return self.signature.span("batch")[0], self.signature.span("columns")[1]

    def __str__(self) -> str:
        order = "rows" if self.next_column else "tiles" if self.next_row else "columns"
        order = f"runs of {self.taps}" if self.taps else order
        depth = f" depth {self.depth_axes}" if self.depth_axes > 1 else ""
        depth += f" groups of {self.group} along {self.run}" if self.group > 1 else ""
        depth += f" in words of {self.fields}" if self.fields > 1 else ""
        depth += f" loops {self.order}" if self.order else ""
        panels = f"width {self.width or 'any'} lanes {self.lanes} batch {self.batch}{depth}"
        kind = f"pack winograd {self.winograd}x{self.winograd}" if self.winograd else "pack"
        element = f"{self.element} of {self.source}" if self.source else self.element
        return f"{kind} {element} {panels} from {order}"


def packing_text(packing: Packing) -> str:
    """Return the LLVM module of a packing kernel."""
    if packing.winograd:
        return _FilterEmission(packing).text()
    if packing.group > 1:
        return _GroupEmission(packing).text()
    if packing.fields > 1:
        return _FieldEmission(packing).text()
    if packing.next_row:
        return _TileEmission(packing).text()
    if packing.taps:
        return _RunEmission(packing).text()
    return (_RowEmission if packing.in_order else _PackingEmission)(packing).text()


class _PackingEmission:
    def __init__(self, packing: Packing) -> None:
        self.packing, self.e = packing, Emitter(opaque_loops=True)
        arguments = Arguments(self.e, packing.signature)
        self.sizes, self.depths = arguments.numbers("batch"), arguments.numbers("depths")
        self.columns, self.source = arguments.number("columns"), arguments.pointer("source")
        self.strides, self.down = arguments.numbers("batch_strides"), arguments.numbers("depth_strides")
        self.across, self.target = arguments.number("column_stride"), arguments.pointer("target")
        self.item = arguments.number("item")
        self.width = self.e.index(packing.width) if packing.width else arguments.number("width")
        self.element_bytes = element_bytes(packing.element)

    def text(self) -> str:
        """Return the module: every job packs one panel."""
        e, width = self.e, self.width
        panels = e.binary("udiv", e.add(self.columns, e.add(width, -1)), width)
        jobs = panels
        for count in self.sizes:
            jobs = e.mul(jobs, count)
        low, high = e.share(jobs)
        with e.loop(low, high) as job:
            panel, batch = e.binary("urem", job, panels), e.binary("udiv", job, panels)
            to = e.offset(self.target, e.mul(batch, self.item))
            to = e.offset(to, e.mul(panel, e.binary("udiv", self.item, panels)))
            self._panel(self._matrix(batch), e.mul(panel, width), to)
        return e.text()

    def _matrix(self, batch: Register) -> Register:
        """Return the address of the matrix of one item of the batch."""
        e, base = self.e, self.source
        for count, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            base = e.offset(base, e.mul(e.binary("urem", batch, count), stride))
            batch = e.binary("udiv", batch, count)
        return base

    def _panel(self, matrix: Register, column: Register, to: Register) -> None:
        e, packing = self.e, self.packing
        with contextlib.ExitStack() as loops:
            row, places = matrix, dict[int, Register]()
            for axis in packing.order or range(packing.depth_axes):
                places[axis] = place = loops.enter_context(e.loop(e.index(0), self.depths[axis]))
                row = e.offset(row, e.mul(place, self.down[axis]))
            k = places[0]
            for axis, size in enumerate(self.depths[1:], 1):
                k = e.add(e.mul(k, size), places[axis])
            line = e.offset(to, e.mul(k, e.mul(self.width, self.element_bytes)))
            if packing.width:
                for v in range(0, packing.width, packing.lanes):
                    self._copy(row, e.add(column, v), e.offset(line, e.index(v * self.element_bytes)))
                return
            with e.loop(e.index(0), self.width, packing.lanes) as v:
                self._copy(row, e.add(column, v), e.offset(line, e.mul(v, self.element_bytes)))

    def _copy(self, row: Register, column: Register, to: Register) -> None:
        """Emit the copy of one vector of columns."""
        align = self.packing.lanes * self.element_bytes
        self.e.store(self._stored_form(self._vector(row, column)), to, align=align)

    def _stored_form(self, x: Register) -> Register:
        """Return elements as panels store them: cast from `source`; uint8 offset by -128, int4 as int8."""
        if self.packing.source:
            return cast(self.e, x, self.packing.source, self.packing.element)
        if self.packing.element in SMALL_INTEGERS:
            return cast(self.e, x, self.packing.element, "int8")
        if self.packing.element != "uint8":
            return x
        return self.e.binary("xor", x, self.e.constant(x.kind, 1 << 7))

    def _vector(self, row: Register, column: Register) -> Register:
        """Return a vector of columns of a row; those past the last column are 0."""
        e, lanes = self.e, self.packing.lanes
        kind = kind_of(self.packing.read, lanes)
        mask = lanes_before(e, column, self.columns, lanes)
        start = e.offset(row, e.mul(column, self.across))
        if self.packing.next_column:
            return e.load(start, kind, mask)
        return gathered(e, start, self.across, kind, mask)


class _RowEmission(_PackingEmission):
    """Packs row by row, in the order of memory, for all panels at once."""

    def text(self) -> str:
        """Return the module: every job packs some rows."""
        e, depth = self.e, self.depths[0]
        blocks = e.binary("udiv", e.add(depth, _ROWS - 1), e.index(_ROWS))
        low, high = e.share(product_of(e, [*self.sizes, blocks]))
        with e.loop(low, high) as job:
            batch, block = e.binary("udiv", job, blocks), e.binary("urem", job, blocks)
            first = e.mul(block, _ROWS)
            matrix, to = self._matrix(batch), e.offset(self.target, e.mul(batch, self.item))
            with e.loop(first, e.least(e.add(first, _ROWS), depth)) as k:
                line = e.offset(to, e.mul(k, self.packing.width * self.element_bytes))
                self._row(e.offset(matrix, e.mul(k, self.down[0])), line)
        return e.text()

    def _row(self, row: Register, line: Register) -> None:
        """Emit the copy of a row: full panels, then a partial one, padded with zeros."""
        e, packing, size = self.e, self.packing, self.element_bytes
        panel = e.mul(self.depths[0], packing.width * size)
        whole = e.binary("udiv", self.columns, e.index(packing.width))
        kind, align = kind_of(packing.read, packing.lanes), packing.lanes * size
        read = element_bytes(packing.read)
        with e.loop(e.index(0), whole) as number:
            start = e.offset(row, e.mul(number, packing.width * read))
            to = e.offset(line, e.mul(number, panel))
            for v in range(0, packing.width, packing.lanes):
                x = e.load(e.offset(start, e.index(v * read)), kind, align=read)
                e.store(self._stored_form(x), e.offset(to, e.index(v * size)), align=align)
        done = e.mul(whole, packing.width)
        with e.when(e.compare("icmp slt", done, self.columns)):
            to = e.offset(line, e.mul(whole, panel))
            for v in range(0, packing.width, packing.lanes):
                self._copy(row, e.add(done, v), e.offset(to, e.index(v * size)))


class _TileEmission(_PackingEmission):
    """Packs columns with stride 1 along `k`, by transposing tiles: each cache line is read once."""

    def _panel(self, matrix: Register, column: Register, to: Register) -> None:
        e, width = self.e, self.packing.width
        *outer, depth = self.depths
        with contextlib.ExitStack() as loops:
            row, lines = matrix, e.index(0)
            for size, stride in zip(outer, self.down, strict=False):
                place = loops.enter_context(e.loop(e.index(0), size))
                row, lines = e.offset(row, e.mul(place, stride)), e.add(e.mul(lines, size), place)
            target = e.offset(to, e.mul(e.mul(lines, depth), width * self.element_bytes))
            v = loops.enter_context(e.loop(e.index(0), e.index(width), self.packing.lanes))
            source = PanelSource(
                self.packing.element, self.packing.lanes, row, self.across, depth, self.columns
            )
            line = width * self.element_bytes
            strip(e, source, e.add(column, v), e.offset(target, e.mul(v, self.element_bytes)), line)


class _RunEmission(_PackingEmission):
    """Packs columns whose elements are runs of taps, channel by channel, by transposing tiles of the runs.

    The tiles of as many channels as a vector has lanes end where a run ends: their code is unrolled.
    """

    def _panel(self, matrix: Register, column: Register, to: Register) -> None:
        e, packing = self.e, self.packing
        lanes, channels = packing.lanes, self.depths[-1]
        with e.loop(e.index(0), e.index(packing.width), lanes) as v:
            first = e.add(column, v)
            corner = e.offset(matrix, e.mul(first, self.across))
            target = e.offset(to, e.mul(v, self.element_bytes))
            inside = e.compare("icmp sle", e.add(first, lanes), self.columns)
            tiled = e.select(inside, e.binary("and", channels, e.index(-lanes)), e.index(0))
            with e.loop(e.index(0), tiled, lanes) as channel:
                self._tiles(e.offset(corner, e.mul(channel, self.down[-1])), channel, target)
            kind, mask = kind_of(packing.element, lanes), lanes_before(e, first, self.columns, lanes)
            with e.loop(tiled, channels) as channel, e.loop(e.index(0), e.index(packing.taps)) as tap:
                start = e.offset(corner, e.mul(channel, self.down[-1]))
                start = e.offset(start, e.mul(tap, self.element_bytes))
                x = gathered(e, start, self.across, kind, mask)
                self._put(x, target, e.add(e.mul(tap, channels), channel))

    def _tiles(self, start: Register, channel: Register, target: Register) -> None:
        """Emit the transposition of the runs of some channels, which begin at an address."""
        e, lanes, taps = self.e, self.packing.lanes, self.packing.taps
        kind = kind_of(self.packing.element, lanes)
        lines = [e.add(e.mul(self.depths[-1], tap), channel) for tap in range(taps)]
        for tile in range(taps):
            corner = e.offset(start, e.index(tile * lanes * self.element_bytes))
            rows = [e.load(e.offset(corner, e.mul(self.across, n)), kind) for n in range(lanes)]
            for n, x in enumerate(transposed(e, rows), tile * lanes):
                self._put(x, target, e.add(lines[n % taps], n // taps))

    def _put(self, x: Register, target: Register, line: Register) -> None:
        size = self.element_bytes
        to = self.e.offset(target, self.e.mul(line, self.packing.width * size))
        self.e.store(x, to, align=self.packing.lanes * size)


class _GroupEmission(_PackingEmission):
    """Packs 8-bit integers in groups along `k`, and the sums of the columns."""

    def _panel(self, matrix: Register, column: Register, to: Register) -> None:
        e, packing = self.e, self.packing
        outer = packing.depth_axes - packing.run
        sizes = self.depths[outer:]
        steps = e.binary("udiv", e.add(product_of(e, sizes), packing.group - 1), e.index(packing.group))
        zero = e.constant(Kind("i32", packing.lanes), 0)
        sums = [e.variable(zero) for _ in range(0, packing.width, packing.lanes)]
        lines = e.offset(to, e.index(4 * packing.width))
        with contextlib.ExitStack() as loops:
            row, k = matrix, e.index(0)
            for number in range(outer):
                place = loops.enter_context(e.loop(e.index(0), self.depths[number]))
                row = e.offset(row, e.mul(place, self.down[number]))
                k = e.add(e.mul(k, self.depths[number]), place) if number else place
            step = loops.enter_context(e.loop(e.index(0), steps))
            first = e.mul(step, packing.group)
            rows = [self._row(row, e.add(first, j), sizes) for j in range(packing.group)]
            line = e.offset(lines, e.mul(e.add(e.mul(k, steps), step), packing.width * packing.group))
            self._store(rows, column, sums, line)
        for v, total in enumerate(sums):
            e.store(e.get(total), e.offset(to, e.index(v * packing.lanes * 4)), align=4)

    def _store(
        self, rows: list[tuple[Register, Register]], column: Register, sums: list[Variable], line: Register
    ) -> None:
        """Emit the groups of all columns of a panel at one step of `k`."""
        e, packing = self.e, self.packing
        for v, total in enumerate(sums):
            x = self._group(rows, e.add(column, v * packing.lanes), total)
            e.store(x, e.offset(line, e.index(v * packing.lanes * packing.group)), align=1)

    def _row(self, base: Register, k: Register, sizes: list[Register]) -> tuple[Register, Register]:
        """Return the address of row `k` of the run, or of the last row, and whether `k` is inside the run."""
        e, count = self.e, product_of(self.e, sizes)
        inside = e.compare("icmp slt", k, count)
        places = digits(e, e.least(k, e.add(count, -1)), sizes)
        for place, stride in zip(places, self.down[len(self.down) - len(sizes) :], strict=True):
            base = e.offset(base, e.mul(place, stride))
        return base, inside

    def _group(self, rows: list[tuple[Register, Register]], column: Register, total: Variable) -> Register:
        """Return a vector of groups, one a column, and add their elements to the sums of the columns."""
        e, lanes = self.e, self.packing.lanes
        wide = Kind(f"i{8 * self.packing.group}", lanes)
        found = e.constant(wide, 0)
        for j, (row, inside) in enumerate(rows):
            x = self._stored_form(self._vector(row, column))
            x = e.select(e.splat(inside, lanes), x, e.constant(x.kind, 0))
            e.assign(total, e.binary("add", e.get(total), e.convert("sext", x, "i32")))
            part = e.binary("shl", e.convert("zext", x, wide.scalar), e.constant(wide, 8 * j))
            found = e.binary("or", found, part)
        return found


class _FieldEmission(_PackingEmission):
    """Packs integers of a few bits into words along `k`."""

    def _panel(self, matrix: Register, column: Register, to: Register) -> None:
        e, packing = self.e, self.packing
        words = e.binary("udiv", self.depths[-1], e.index(packing.fields))
        with contextlib.ExitStack() as loops:
            row, k = matrix, e.index(0)
            for number, (size, stride) in enumerate(zip(self.depths[:-1], self.down, strict=False)):
                place = loops.enter_context(e.loop(e.index(0), size))
                row = e.offset(row, e.mul(place, stride))
                k = e.add(e.mul(k, size), place) if number else place
            word = loops.enter_context(e.loop(e.index(0), words))
            line = e.offset(to, e.mul(e.add(e.mul(k, words), word), packing.width * _WORD_BYTES))
            first = e.offset(row, e.mul(e.mul(word, packing.fields), self.down[-1]))
            for v in range(0, packing.width, packing.lanes):
                x = self._word(first, e.add(column, v))
                e.store(x, e.offset(line, e.index(v * _WORD_BYTES)), align=packing.lanes * _WORD_BYTES)

    def _word(self, first: Register, column: Register) -> Register:
        """Return a vector of words, one a column, of the rows from `first` on."""
        e, packing = self.e, self.packing
        bits = _WORD_BYTES * 8 // packing.fields
        kind = Kind("i32", packing.lanes)
        found = e.constant(kind, 0)
        for field in range(packing.fields):
            row = e.offset(first, e.mul(self.down[-1], field))
            x = e.convert("zext", self._vector(row, column), "i32")
            x = e.binary("and", x, e.constant(kind, (1 << bits) - 1))
            found = e.binary("or", found, e.binary("shl", x, e.constant(kind, bits * field)))
        return found


class _FilterEmission(_PackingEmission):
    """Transforms filters [3, 3, channels, n] for Winograd's algorithm."""

    def _panel(self, matrix: Register, column: Register, to: Register) -> None:
        e, packing, transform = self.e, self.packing, transform_of(self.packing.winograd)
        step = self.down[-1]
        line = packing.width * self.element_bytes
        place_bytes = e.mul(self.depths[2], line)
        with e.loop(e.index(0), self.depths[2]) as k:
            row, target = e.offset(matrix, e.mul(k, step)), e.offset(to, e.mul(k, line))
            for v in range(0, packing.width, packing.lanes):
                columns = [
                    transform.filters(e, [self._tap(row, (y, x), e.add(column, v)) for y in range(TAPS)])
                    for x in range(TAPS)
                ]
                places = [x for taps in zip(*columns, strict=True) for x in transform.filters(e, taps)]
                for number, x in enumerate(places):
                    here = e.add(e.mul(place_bytes, number), e.index(v * self.element_bytes))
                    e.store(x, e.offset(target, here))

    def _tap(self, filters: Register, place: tuple[int, int], column: Register) -> Register:
        """Return a vector of columns of one tap of the filters."""
        row = filters
        for index, stride in zip(place, self.down, strict=False):
            row = self.e.offset(row, self.e.mul(stride, index))
        return self._stored_form(self._vector(row, column))
