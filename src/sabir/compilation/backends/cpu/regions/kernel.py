"""Regions of images (NHWC), pooled over a grid of bins: the trip counts of the loops depend on the region.

The lanes of vectors are channels, so the indices and weights of a sample are computed once for all channels.
A job is a row of bins. Each channel combines its samples in their order, so the bits do not depend on vectors
or threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.arguments import Arguments, buffer_at
from sabir.compilation.backends.cpu.emit.body import function_of, kind_of
from sabir.compilation.backends.cpu.emit.emitter import BOOL, INDEX, Emitter, Kind, Register
from sabir.compilation.backends.cpu.emit.jobs import lanes_before
from sabir.compilation.plan.entries import ERRORS
from sabir.compilation.plan.signature import KernelSignature, declared, of_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Variable

_VECTORS = 4  # vectors of channels that are pooled together
_INFINITY = float("inf")
SIZES = ("regions", "rows", "columns", "height", "width", "channels")  # rows and columns of bins


@dataclass(frozen=True, slots=True)
class Regions:
    """The `mean` or `max` over the samples of a bin if `sampled`, else over its pixels; see `PoolRegions`."""

    element: str
    lanes: int
    op: str
    sampled: bool

    @property
    def signature(self) -> KernelSignature:
        """The arguments: the number of regions, rows and columns of bins, sizes of images, and tensors."""
        return declared(**of_kind("size", SIZES), **of_kind("tensor", self.tensors))

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors among the arguments."""
        return ("results", "images", "counts", "places") if self.sampled else ("results", "images", "counts")

    def __str__(self) -> str:
        return f"{self.op} of {'samples' if self.sampled else 'pixels'} of regions ({self.element})"


def regions_text(regions: Regions) -> str:
    """Return the LLVM module of pooled regions."""
    return _RegionsEmitter(regions).text()


class _Axis(NamedTuple):
    """One axis of a bin: the length of the axis of the image, and the range of the samples or pixels."""

    length: Register
    begin: Register  # the coordinate of the bin if it is sampled, else the first pixel
    stop: Register  # the number of samples, or the pixel after the last one
    size: Register | None = None  # the size of a sampled bin in pixels


class _Sample(NamedTuple):
    """A sample along an axis: whether it is inside the image, its two neighbour pixels, and their weights."""

    inside: Register
    pixels: tuple[Register, Register]
    weights: tuple[Register, Register]


class _RegionsEmitter:
    def __init__(self, regions: Regions) -> None:
        self.spec, self.e = regions, Emitter()
        e = self.e
        self.kind = kind_of(regions.element)
        arguments = Arguments(e, regions.signature)
        sizes = map(arguments.number, SIZES)
        self.regions, self.rows, self.columns, self.height, self.width, self.channels = sizes
        self.results, self.images = arguments.pointer("results"), arguments.pointer("images")
        self.counts = arguments.pointer("counts")
        self.places = arguments.pointer("places") if regions.sampled else self.counts
        self.bins = e.add(self.rows, self.columns)

    def text(self) -> str:
        e = self.e
        length = e.index(3) if self.spec.sampled else e.add(e.mul(self.bins, 2), 1)
        low, high = e.share(e.mul(self.regions, self.rows))
        with e.loop(low, high) as job:
            region = e.binary("udiv", job, self.rows)
            counts = e.offset(self.counts, e.mul(region, length), "i64")
            item = e.load(counts, INDEX)
            known = e.compare("icmp sge", item, e.index(0))
            with e.when(self._not(known)):
                e.store(e.index(1), buffer_at(e, e.index(ERRORS)))
            with e.when(known):
                self._row(job, region, counts, item)
        return e.text()

    def _not(self, x: Register) -> Register:
        return self.e.binary("xor", x, self.e.constant(BOOL, 1))

    def _row(self, job: Register, region: Register, counts: Register, item: Register) -> None:
        """Emit the loop over a row of bins of a region."""
        e = self.e
        image = e.mul(e.mul(e.mul(item, self.height), self.width), self.channels)
        image = e.offset(self.images, image, self.kind.scalar)
        row = e.binary("urem", job, self.rows)
        with e.loop(e.index(0), self.columns) as column:
            place = e.mul(e.add(e.mul(job, self.columns), column), self.channels)
            axes = (
                self._axis(region, counts, row, self.height, 0),
                self._axis(region, counts, e.add(column, self.rows), self.width, 1),
            )
            self._all_channels(image, e.offset(self.results, place, self.kind.scalar), axes)

    def _axis(
        self, region: Register, counts: Register, place: Register, length: Register, number: int
    ) -> _Axis:
        """Emit the loads for one axis of a bin; in the tables, the columns of bins follow the rows."""
        e = self.e
        if not self.spec.sampled:
            pair = e.offset(e.offset(counts, e.index(1), "i64"), e.mul(place, 2), "i64")
            return _Axis(length, e.load(pair, INDEX), e.load(e.offset(pair, e.index(1), "i64"), INDEX))
        own = e.offset(self.places, e.mul(region, e.add(self.bins, 2)), self.kind.scalar)
        begin, size = (
            e.load(e.offset(own, at, self.kind.scalar), self.kind) for at in (place, e.add(self.bins, number))
        )
        return _Axis(length, begin, e.load(e.offset(counts, e.index(1 + number), "i64"), INDEX), size)

    def _all_channels(self, image: Register, result: Register, axes: tuple[_Axis, _Axis]) -> None:
        """Emit a bin for all channels: several vectors together, then single vectors with a mask."""
        e, lanes = self.e, self.spec.lanes
        step = _VECTORS * lanes
        whole = e.binary("and", self.channels, e.index(-step))
        pool = self._samples if self.spec.sampled else self._pixels
        with e.loop(e.index(0), whole, step) as first:
            places = [e.add(first, number * lanes) for number in range(_VECTORS)]
            self._bin(pool, image, result, axes, places, None)
        with e.loop(whole, self.channels, lanes) as first:
            self._bin(pool, image, result, axes, [first], lanes_before(e, first, self.channels, lanes))

    def _bin(
        self, pool: Callable[..., Register], image: Register, result: Register, axes: tuple[_Axis, _Axis],
        channels: Sequence[Register], mask: Register | None,
    ) -> None:  # fmt: skip
        e, kind = self.e, Kind(self.kind.scalar, self.spec.lanes)
        start = e.constant(kind, 0.0 if self.spec.op == "mean" else -_INFINITY)
        totals = [e.variable(start) for _ in channels]

        def read(row: Register, column: Register) -> list[Register]:
            pixel = e.mul(e.add(e.mul(row, self.width), column), self.channels)
            base = e.offset(image, pixel, self.kind.scalar)
            return [e.load(e.offset(base, channel, self.kind.scalar), kind, mask) for channel in channels]

        count = pool(axes, read, totals)
        some = e.compare("icmp sgt", count, e.index(0))
        divisor = e.splat(e.convert("sitofp", count, self.kind.scalar), kind.lanes)
        for total, channel in zip(totals, channels, strict=True):
            x = e.get(total)
            x = e.binary("fdiv", x, divisor) if self.spec.op == "mean" else x
            x = e.select(some, x, e.constant(kind, 0.0))
            e.store(x, e.offset(result, channel, self.kind.scalar), mask)

    # ------------------------------------------------------------ whole pixels

    def _pixels(
        self, axes: tuple[_Axis, _Axis], read: Callable[..., list[Register]], totals: Sequence[Variable]
    ) -> Register:
        """Emit the reduction over the pixels of a bin; return a number that is positive if there are any."""
        e, (down, across) = self.e, axes
        with e.loop(down.begin, down.stop) as row, e.loop(across.begin, across.stop) as column:
            self._combine(totals, read(row, column))
        high, wide = (e.binary("sub", axis.stop, axis.begin) for axis in axes)
        return e.select(e.compare("icmp sgt", high, e.index(0)), wide, e.index(0))

    def _combine(self, totals: Sequence[Variable], terms: Sequence[Register]) -> None:
        """Emit the combination of each accumulator with its term."""
        e = self.e
        for total, term in zip(totals, terms, strict=True):
            e.assign(total, self._both(e.get(total), term))

    def _both(self, a: Register, b: Register) -> Register:
        if self.spec.op == "mean":
            return self.e.binary("fadd", a, b)
        return function_of("max", self.spec.element)(self.e, (a, b))

    # ------------------------------------------------------------ samples

    def _samples(
        self, axes: tuple[_Axis, _Axis], read: Callable[..., list[Register]], totals: Sequence[Variable]
    ) -> Register:
        """Emit the reduction over the samples of a bin; return their number."""
        e, (down, across) = self.e, axes
        with e.loop(e.index(0), down.stop) as i:
            row = self._sample(down, i)
            with e.loop(e.index(0), across.stop) as j:
                column = self._sample(across, j)
                inside = e.binary("and", row.inside, column.inside)
                with e.when(inside):
                    self._combine(totals, self._interpolated(row, column, read))
                if self.spec.op == "max":
                    zero = e.constant(totals[0].kind, 0.0)
                    with e.when(self._not(inside)):
                        self._combine(totals, [zero] * len(totals))
        return e.mul(down.stop, across.stop)

    def _interpolated(
        self, row: _Sample, column: _Sample, read: Callable[..., list[Register]]
    ) -> list[Register]:
        """Emit the sum, or the maximum, of the four neighbour pixels times their weights."""
        e, found = self.e, list[Register]()
        for i, down in zip(row.pixels, row.weights, strict=True):
            for j, across in zip(column.pixels, column.weights, strict=True):
                weight = e.splat(e.binary("fmul", down, across), self.spec.lanes)
                if found and self.spec.op == "mean":
                    found = [e.fma(x, weight, y) for x, y in zip(read(i, j), found, strict=True)]
                    continue
                terms = [e.binary("fmul", x, weight) for x in read(i, j)]
                found = list(starmap(self._both, zip(found, terms, strict=True))) if found else terms
        return found

    def _sample(self, axis: _Axis, number: Register) -> _Sample:
        """Emit sample `number` along an axis."""
        e, kind = self.e, self.kind
        if axis.size is None:
            raise TypeError("a sampled bin has a size")
        inner = e.binary("fadd", e.convert("sitofp", number, kind.scalar), self._number(0.5))
        each = e.convert("sitofp", axis.stop, kind.scalar)
        at = e.binary("fadd", axis.begin, e.binary("fdiv", e.binary("fmul", inner, axis.size), each))
        length = e.convert("sitofp", axis.length, kind.scalar)
        inside = e.binary(
            "and",
            e.compare("fcmp oge", at, self._number(-1.0)),
            e.compare("fcmp ole", at, length),
        )
        inside = e.binary("and", inside, e.compare("icmp sgt", axis.length, e.index(0)))
        after = e.compare("fcmp ogt", at, self._number(0.0))
        at = e.select(e.binary("and", inside, after), at, self._number(0.0))
        last = e.add(axis.length, -1)
        low = e.least(e.convert("fptosi", at, "i64"), last)
        high = e.least(e.add(low, 1), last)
        beyond = e.binary("fsub", at, e.convert("sitofp", low, kind.scalar))
        beyond = e.select(e.compare("icmp sgt", high, low), beyond, self._number(0.0))
        return _Sample(inside, (low, high), (e.binary("fsub", self._number(1.0), beyond), beyond))

    def _number(self, x: float) -> Register:
        return self.e.constant(self.kind, x)
