"""Accumulators: the running result of a fold in each lane, and its combination at the end of a row.

The rounding error of an addition is proportional to the sum so far. So floats are summed in blocks of
`ADDITIONS` additions. The sums of the blocks are added with compensation: the exact errors of these additions
are summed too. So the error of a sum does not grow with its length.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.compilation.backends.cpu.emit.body import function_of, kind_of
from sabir.compilation.backends.cpu.emit.emitter import BOOL, Kind, Register
from sabir.compilation.backends.cpu.emit.lanes import Lanes, exact_sum_of, where
from sabir.compilation.backends.cpu.emit.nest import Fold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.compilation.backends.cpu.emit.body import Body, Point
    from sabir.compilation.backends.cpu.emit.emitter import Variable

ADDITIONS = 16  # a power of two, as many as numpy adds one after another

FUNCTIONS_OF_FOLDS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
_POSITIONS = {"argmax": "gt", "argmin": "lt"}


class _Blocks(NamedTuple):
    """The sum of the blocks before the current one, if there are any, and its rounding errors."""

    total: Variable
    errors: Variable


class Accumulator:
    """One fold of a row; `copies` independent accumulators hide the latency of its function.

    With `columns` every lane is a separate row; else lanes and copies are combined, in a fixed order.
    """

    def __init__(self, body: Body, number: int, lanes: int, copies: int, *, columns: bool = False) -> None:
        step = body.nest.steps[number]
        if not isinstance(step, Fold):
            raise TypeError(f"step {number} is no fold")
        self._body, self._fold, self._lanes, self._columns = body, step, lanes, columns
        element = body.nest.steps[step.operand].element
        self._element, self._kind = element, kind_of(element, lanes)
        self._copies = 1 if step.op in _POSITIONS else copies
        start = body.e.constant(self._kind, start_of(step.op, element))
        self._values = [body.e.variable(start) for _ in range(self._copies)]
        self._places = (
            body.e.variable(body.e.constant(Kind("i64", lanes), -1)) if step.op in _POSITIONS else None
        )
        self._blocks: _Blocks | None = None
        if step.op == "sum" and self._kind.is_float:
            self._blocks = _Blocks(body.e.unset(self._kind), body.e.unset(self._kind))

    @property
    def is_blocked(self) -> bool:
        """Whether the fold sums its terms in blocks."""
        return self._blocks is not None

    def end_block(self, is_first: Register) -> None:
        """Emit the addition of the sum of a block to the sum of the blocks before it."""
        if self._blocks is None:
            return
        e, start = self._body.e, self._body.e.constant(self._kind, 0)
        before, lost = (Lanes(e, e.select(is_first, start, e.get(slot))) for slot in self._blocks)
        rounded, error = exact_sum_of(before, Lanes(e, self._joined()))
        for slot, x in zip(self._blocks, (rounded, lost + error), strict=True):
            e.assign(slot, x.register)
        for slot in self._values:
            e.assign(slot, start)

    def _with_blocks(self, last: Register, blocks: Blocks) -> Register:
        """Return the sum of all blocks and of the last one, in each lane."""
        if self._blocks is None:
            return last
        e, (total, errors) = self._body.e, self._blocks
        result = e.variable(last)
        with e.when(blocks.have_ended(), rarely=True):
            lost = Lanes(e, e.get(errors))
            lost = where(lost.is_nan, 0.0, lost)  # where the sum of the blocks is infinite or NaN
            e.assign(result, (Lanes(e, e.get(total)) + (lost + Lanes(e, last))).register)
        return e.get(result)

    def _joined(self) -> Register:
        """Return the combination of all copies."""
        e, values = self._body.e, [self._body.e.get(v) for v in self._values]
        function = function_of(FUNCTIONS_OF_FOLDS[self._fold.op], self._element)
        while len(values) > 1:
            values = [function(e, (a, b)) for a, b in zip(values[::2], values[1::2], strict=True)]
        return values[0]

    def add(self, copy: int, x: Register, point: Point) -> None:
        """Emit the combination with the values of a point; masked-off lanes are unchanged."""
        e, slot = self._body.e, self._values[copy % self._copies]
        before = e.get(slot)
        if self._places is not None:
            self._add_place(x, before, point)
            return
        after = function_of(FUNCTIONS_OF_FOLDS[self._fold.op], self._element)(e, (before, x))
        if point.mask is not None and not self._columns:
            after = e.select(point.mask, after, before)
        e.assign(slot, after)

    def _add_place(self, x: Register, before: Register, point: Point) -> None:
        e, slot, places = self._body.e, self._values[0], self._places
        if places is None:
            return
        (axis,) = (a for a in range(self._body.nest.axes) if self._body.nest.reduced[a])
        place = point.indices[axis]
        numbers = e.splat(place, self._lanes)
        if axis == self._body.nest.inner:
            numbers = e.binary("add", numbers, self._body.lane_numbers(self._lanes))
        old = e.get(places)
        better = self._better(x, before)
        first = e.compare("icmp slt", old, e.constant(old.kind, 0))
        better = e.binary("or", better, first)
        if point.mask is not None and not self._columns:
            better = e.binary("and", better, point.mask)
        e.assign(slot, e.select(better, x, before))
        e.assign(places, e.select(better, numbers, old))

    def _better(self, x: Register, best: Register) -> Register:
        """Return whether a value replaces the best so far; NaN counts as the extreme, as in numpy."""
        e = self._body.e
        op = _POSITIONS[self._fold.op]
        found = function_of({"gt": "ge", "lt": "le"}[op] if self._fold.last else op, self._element)(
            e, (x, best)
        )
        if not x.kind.is_float:
            return found
        is_nan, was_nan = (e.compare("fcmp uno", v, v) for v in (x, best))
        replaced = e.binary("or", found, is_nan)
        keeps = e.binary("xor", was_nan, e.constant(was_nan.kind, 1))
        if self._fold.last:
            return e.binary("or", e.binary("and", replaced, keeps), is_nan)
        return e.binary("and", replaced, keeps)

    def combined(self, blocks: Blocks) -> Register:
        """Emit the result: one number, or with `columns` a vector."""
        e = self._body.e
        if self._places is not None:
            places = e.get(self._places)
            return places if self._columns else self._best_place(e.get(self._values[0]), places)
        x = self._with_blocks(self._joined(), blocks)
        if self._columns:
            return x
        function = function_of(FUNCTIONS_OF_FOLDS[self._fold.op], self._element)
        while x.kind.lanes > 1:
            x = function(e, _halves(self._body, x))
        return x

    def _best_place(self, best: Register, places: Register) -> Register:
        """Emit the index of the extreme of all lanes; of equal ones the first, or the last."""
        e = self._body.e
        value, place = _lane(self._body, best, 0), _lane(self._body, places, 0)
        for lane in range(1, self._lanes):
            x, p = _lane(self._body, best, lane), _lane(self._body, places, lane)
            better = self._better(x, value)
            same = e.compare("fcmp oeq" if x.kind.is_float else "icmp eq", x, value)
            if x.kind.is_float:
                nans = e.binary("and", *(e.compare("fcmp uno", v, v) for v in (x, value)))
                same = e.binary("or", same, nans)
            sooner = e.compare("icmp sgt" if self._fold.last else "icmp slt", p, place)
            better = e.select(same, sooner, better)
            present = e.compare("icmp sge", p, e.index(0))
            absent = e.compare("icmp slt", place, e.index(0))
            better = e.binary("and", present, e.binary("or", better, absent))
            value, place = e.select(better, x, value), e.select(better, p, place)
        return place


class Blocks:
    """The blocks of the sums of a pass, which end after `ADDITIONS` additions to each accumulator.

    The index along the inner axis, which advances by `step`, determines the number of additions. For
    several reduced axes, they are counted.
    """

    def __init__(self, body: Body, accumulators: Iterable[Accumulator], step: int) -> None:
        self._e = e = body.e
        self._sums = [a for a in accumulators if a.is_blocked]
        self._length = step * ADDITIONS
        self._step = step
        self._first_end = e.add(body.begin, self._length)
        *others, self._size = [n for n, reduced in zip(body.sizes, body.nest.reduced, strict=True) if reduced]
        is_counted = bool(self._sums and others)
        self._counter = e.variable(e.index(0)) if is_counted else None
        self._ended = e.variable(e.constant(BOOL, 0)) if is_counted else None

    def end_if_full(self, place: Register) -> None:
        """Emit the end of a block if it is full after the additions at an index of the inner axis."""
        e = self._e
        if self._counter is not None:
            self.count(e.index(1))
        elif self._sums:
            done = e.add(place, self._step)
            left = e.binary("and", done, e.index(self._length - 1))
            with e.when(e.compare("icmp eq", left, e.index(0)), rarely=True):
                self._end(e.compare("icmp eq", done, self._first_end))

    def count(self, additions: Register) -> None:
        """Emit the count of additions along one of several axes, and the end of a block if it is full."""
        e = self._e
        if self._counter is None or self._ended is None:
            return
        count = e.add(e.get(self._counter), additions)
        e.assign(self._counter, count)
        with e.when(e.compare("icmp sge", count, e.index(ADDITIONS)), rarely=True):
            self._end(e.binary("xor", e.get(self._ended), e.constant(BOOL, 1)))
            e.assign(self._counter, e.index(0))
            e.assign(self._ended, e.constant(BOOL, 1))

    def have_ended(self) -> Register:
        """Emit whether any block has ended, at the end of a row."""
        e = self._e
        if self._ended is not None:
            return e.get(self._ended)
        return e.compare("icmp sge", self._size, self._first_end)

    def _end(self, is_first: Register) -> None:
        for each in self._sums:
            each.end_block(is_first)


def start_of(op: str, element: str) -> float:
    """Return the neutral element of a fold."""
    if op in {"sum", "prod"}:
        return 0 if op == "sum" else 1
    greatest = op in {"min", "argmin"}
    if element in {"float", "double"}:
        return math.inf if greatest else -math.inf
    if element == "bool":
        return int(greatest)
    info = np.iinfo(element)
    return info.max if greatest else info.min


def _lane(body: Body, x: Register, lane: int) -> Register:
    return body.e.value(Kind(x.kind.scalar), f"extractelement {x}, i32 {lane}")


def _halves(body: Body, x: Register) -> tuple[Register, Register]:
    """Return the lower and the upper half of a vector."""
    half = x.kind.lanes // 2
    kind = Kind(x.kind.scalar, half)
    if half == 1:
        return _lane(body, x, 0), _lane(body, x, 1)

    def part(first: int) -> Register:
        order = ", ".join(f"i32 {first + n}" for n in range(half))
        return body.e.value(kind, f"shufflevector {x}, {x.kind} poison, <{half} x i32> <{order}>")

    return part(0), part(half)
