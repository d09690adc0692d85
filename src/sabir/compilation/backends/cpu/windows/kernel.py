"""Sliding windows: pooling, and depthwise and grouped convolutions.

Vectors are along the channels, or along another axis if there is one channel. Several neighbouring windows
are computed at a time, so that each vector of weights is loaded once for all of them.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body, Point, function_of, kind_of
from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register, Variable
from sabir.compilation.backends.cpu.emit.folds import FUNCTIONS_OF_FOLDS, start_of
from sabir.compilation.backends.cpu.emit.jobs import at, jobs, mask_of
from sabir.compilation.backends.cpu.emit.nest import Accumulated, Nest
from sabir.compilation.backends.cpu.windows.byte_windows import ByteWindows, Panel
from sabir.compilation.plan.signature import KernelSignature, declared, of_kind
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from sabir.compilation.backends.cpu.emit.terms import Dot

_CHUNK = 1024  # elements along the inner axis in a job
_UNROLLED = 16  # elements along the last axis of a window up to which that loop is unrolled


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows of shape `taps`, reduced by `op`; the nest is the epilogue and the stores.

    The last access of the nest is the first element of each window. `weighted` windows are multiplied by
    weights `[channels / lanes][mixed][taps][lanes]`; each result sums over `mixed` channels. `places` windows
    are computed at a time.

    Weighted windows of uint8 use the instruction `dot`: see `windows/byte_windows`. Neighbouring windows are
    `step` elements apart along the last axis of a window, 0 if unknown; shared elements are loaded once.
    `whole`: the length of the inner axis is a multiple of the lanes, so no mask is needed.
    """

    nest: Nest
    element: str
    op: str
    taps: tuple[int, ...]
    weighted: bool
    places: int
    mixed: int = 1
    dot: Dot | None = None
    step: int = 0
    whole: bool = False

    @property
    def signature(self) -> KernelSignature:
        """The arguments: the arguments of the nest, the strides of the taps, and the weights.

        Integer weights have the bytes of a panel, and zero points: `zero` is subtracted from the operand,
        `weights_zero` from the weights.
        """
        return declared(
            nest=self.nest.signature, tap_strides=("stride", len(self.taps)),
            **of_kind("tensor", ["weights"] if self.weighted else []),
            **of_kind("bytes", ["panel_bytes"] if self.dot else []),
            **of_kind("number", ["zero", "weights_zero"] if self.dot else []),
        )  # fmt: skip

    def __str__(self) -> str:
        shape = "x".join(map(str, self.taps))
        weighted = " weighted" if self.weighted else ""
        weighted += f" of {self.mixed} channels" if self.mixed > 1 else ""
        weighted += f" by {self.dot}" if self.dot else ""
        weighted += f" step {self.step}" if self.step else ""
        places = f"places {self.places}{' whole' if self.whole else ''}"
        return f"windows {self.op} {self.element} {shape}{weighted} {places}\n{self.nest}"


def sliding_text(sliding: Sliding) -> str:
    """Return the LLVM module of a kernel over windows."""
    return _WindowsEmitter(sliding).text()


class _WindowsEmitter:
    def __init__(self, sliding: Sliding) -> None:
        self.sliding, self.e = sliding, Emitter(opaque_loops=True)
        nest = sliding.nest
        self.arguments = Arguments(self.e, sliding.signature)
        self.body = Body(nest, self.arguments.group("nest"))
        self.strides = self.arguments.numbers("tap_strides")
        self.weights = self.arguments.pointer("weights") if sliding.weighted else None
        self.input = len(nest.accesses) - 1
        self.fixed = Point([])
        outer = [axis for axis in range(nest.axes) if axis != nest.inner]
        self.others, self.across = outer[:-1], (outer[-1] if outer else None)

    def text(self) -> str:
        e, body, sliding = self.e, self.body, self.sliding
        length = body.sizes[body.nest.inner]
        chunks = e.binary("udiv", e.add(length, _CHUNK - 1), e.index(_CHUNK))
        count = e.index(1) if self.across is None else body.sizes[self.across]
        groups = e.binary("udiv", e.add(count, sliding.places - 1), e.index(sliding.places))
        with jobs(body, self.others, groups, chunks) as (indices, (group, chunk)):
            start = e.mul(chunk, _CHUNK)
            stop = e.least(e.add(start, _CHUNK), length)
            first = e.mul(group, sliding.places)
            past = e.add(first, sliding.places)
            self._cases(indices, (first, past, count), start, stop)
        return e.text()

    def _cases(
        self, indices: list[Register], places: tuple[Register, Register, Register], start: Register,
        stop: Register,
    ) -> None:  # fmt: skip
        """Emit a full group of windows computed together, and a loop over the windows of a partial group."""
        e, (first, past, count) = self.e, places
        if self.sliding.places == 1:
            self._along(indices, first, 1, start, stop)
            return
        with e.when(e.compare("icmp sle", past, count)):
            self._along(indices, first, self.sliding.places, start, stop)
        with e.when(e.compare("icmp sgt", past, count)), e.loop(first, count) as place:
            self._along(indices, place, 1, start, stop)

    def _along(
        self, indices: list[Register], first: Register, places: int, start: Register, stop: Register
    ) -> None:
        """Emit the loop along the inner axis for a group of windows, and the masked remainder."""
        e, lanes = self.e, self.body.nest.lanes
        self.fixed = self.body.fixed()
        whole = e.add(start, e.binary("and", e.binary("sub", stop, start), e.index(-lanes)))
        with e.loop(start, whole, lanes) as place:
            self._windows(indices, first, places, place, None)
        if self.sliding.whole:
            return
        with e.when(e.compare("icmp slt", whole, stop)):
            self._windows(indices, first, places, whole, mask_of(self.body, whole, stop))

    def _windows(
        self, indices: list[Register], first: Register, places: int, channel: Register,
        mask: Register | None,
    ) -> None:  # fmt: skip
        e, body = self.e, self.body
        points: list[Point] = []
        for m in range(places):
            here = indices if self.across is None else at(indices, self.across, e.add(first, m))
            inner = at(here, body.nest.inner, channel)
            points.append(Point(inner, body.nest.lanes, mask, outer=self.fixed))
        sums = self._combined(points, channel)
        for point, total in zip(points, sums, strict=True):
            for number, step in enumerate(body.nest.steps):
                if isinstance(step, Accumulated):
                    point.values[number] = e.get(total)
            for access, number in body.nest.stores:
                body.write(access, body.value(number, point), point)

    def _combined(self, points: Sequence[Point], channel: Register) -> list[Variable]:
        """Emit the loops over the taps; return the accumulator of each window."""
        if self.sliding.dot is not None:
            return self._of_bytes(points, channel)
        e, sliding = self.e, self.sliding
        size = element_bytes(sliding.element)
        start = e.constant(
            kind_of(sliding.element, self.body.nest.lanes), start_of(sliding.op, sliding.element)
        )
        sums = [e.variable(start) for _ in points]
        overlap = self._overlap(len(points))
        bases = [self.body.address(self.input, point) for point in (points[:1] if overlap else points)]
        weights = None
        if self.weights is not None:
            weights = e.offset(self.weights, e.mul(channel, sliding.mixed * math.prod(sliding.taps) * size))
        with self._taps() as steps:
            if overlap:
                columns = [self._columns(weights, tap)[0] for tap, _ in steps]
                self._add_row(points[0], e.offset(bases[0], steps[0][1]), columns, sums)
                return sums
            for tap, moved in steps:
                columns = self._columns(weights, tap)
                for point, base, total in zip(points, bases, sums, strict=True):
                    read = self._read(point, e.offset(base, moved), channel)
                    for x, w in zip(read, columns, strict=True):
                        e.assign(total, self._with(e.get(total), x, w))
        return sums

    def _columns(self, weights: Register | None, tap: Register) -> list[Register | None]:
        """Emit the loads of the weights of a tap for each of `mixed` channels; [None] without weights."""
        if weights is None:
            return [None]
        e, sliding, lanes = self.e, self.sliding, self.body.nest.lanes
        size = lanes * element_bytes(sliding.element)
        kind = kind_of(sliding.element, lanes)
        numbers = [e.add(tap, i * math.prod(sliding.taps)) for i in range(sliding.mixed)]
        return [e.load(e.offset(weights, e.mul(n, size)), kind, align=size) for n in numbers]

    def _overlap(self, windows: int) -> bool:
        """Return whether neighbouring windows share elements of a row; `windows` are computed together."""
        sliding = self.sliding
        return windows > 1 and 0 < sliding.step < sliding.taps[-1] <= _UNROLLED

    def _add_row(
        self, point: Point, base: Register, columns: Sequence[Register | None], sums: Sequence[Variable]
    ) -> None:
        """Emit the contribution of a row of elements to neighbouring windows; each element is loaded once."""
        e, step = self.e, self.sliding.step
        for place in range((len(sums) - 1) * step + len(columns)):
            here = e.offset(base, e.mul(self.strides[-1], place)) if place else base
            x = e.splat(self.body.read(self.input, point, here), self.body.nest.lanes)
            for number, total in enumerate(sums):
                tap = place - number * step
                if 0 <= tap < len(columns):
                    e.assign(total, self._with(e.get(total), x, columns[tap]))

    def _read(self, point: Point, base: Register, channel: Register) -> list[Register]:
        """Emit `mixed` vectors of operands for a tap: vector i has channel i of the group of each lane."""
        e, lanes, mixed = self.e, self.body.nest.lanes, self.sliding.mixed
        if mixed > lanes:
            size = element_bytes(self.sliding.element)
            before = e.mul(e.binary("and", channel, e.index(mixed - 1)), -size)
            first = e.offset(base, before)
            kind = kind_of(self.sliding.element)
            return [e.splat(e.load(e.offset(first, e.index(i * size)), kind), lanes) for i in range(mixed)]
        x = e.splat(self.body.read(self.input, point, base), lanes)
        if mixed == 1:
            return [x]
        return [e.shuffle(x, [lane // mixed * mixed + i for lane in range(lanes)]) for i in range(mixed)]

    def _of_bytes(self, points: Sequence[Point], channel: Register) -> list[Variable]:
        """Emit the sums of windows of integers."""
        e, sliding, weights = self.e, self.sliding, self.weights
        if weights is None or sliding.dot is None:
            raise TypeError("windows of integers have weights")
        numbers = [self.arguments.number(name) for name in ("panel_bytes", "zero", "weights_zero")]
        windows = ByteWindows(e, sliding.dot, self.body.nest.lanes, sliding.taps, self.strides, sliding.step)
        bases = [self.body.address(self.input, point) for point in points]
        return windows.sums(bases, Panel(weights, *numbers), channel, points[0].mask)

    def _with(self, total: Register, x: Register, w: Register | None) -> Register:
        if w is not None:
            return self.e.fma(x, w, total)
        op = FUNCTIONS_OF_FOLDS[self.sliding.op]
        return function_of(op, self.sliding.element)(self.e, (total, x))

    @contextlib.contextmanager
    def _taps(self) -> Generator[list[tuple[Register, Register]]]:
        """Emit loops over the taps; yield (number, offset in bytes) of those of an iteration.

        The last axis is unrolled if it is short.
        """
        e = self.e
        *outer, last = self.sliding.taps
        if last > _UNROLLED:
            outer, last = [*outer, last], 1
        with contextlib.ExitStack() as loops:
            tap, moved = e.index(0), e.index(0)
            for number, size in enumerate(outer):
                place = loops.enter_context(e.loop(e.index(0), e.index(size)))
                step = e.mul(place, self.strides[number])
                tap = e.add(e.mul(tap, size), place) if number else place
                moved = e.add(moved, step) if number else step
            found = [(tap, moved)]
            if len(outer) < len(self.strides):
                steps = [e.mul(self.strides[-1], n) for n in range(last)]
                found = [(e.add(e.mul(tap, last), n), e.add(moved, step)) for n, step in enumerate(steps)]
            yield found
