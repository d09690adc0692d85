"""Accumulators: the running result of a fold in each lane, and its combination at the end of a row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.compilation.backends.cpu.emit.body import function_of, kind_of
from sabir.compilation.backends.cpu.emit.emitter import Kind, Register
from sabir.compilation.backends.cpu.emit.nest import Fold

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.body import Body, Point

FUNCTIONS_OF_FOLDS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
_POSITIONS = {"argmax": "gt", "argmin": "lt"}


class Accumulator:
    """One fold of a row; `copies` independent ones hide the latency of its function.

    With `columns` every lane is a row of its own, else lanes and copies are combined, in a fixed order.
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

    def add(self, copy: int, x: Register, point: Point) -> None:
        """Emit the combination with the values of a point; masked lanes stay."""
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
        """Return whether a value replaces the best before it; NaN counts as the extreme, as in numpy."""
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

    def combined(self) -> Register:
        """Emit the result: one number, or with `columns` a vector."""
        e = self._body.e
        if self._columns:
            return e.get(self._places or self._values[0])
        if self._places is not None:
            return self._best_place(e.get(self._values[0]), e.get(self._places))
        values = [e.get(v) for v in self._values]
        function = function_of(FUNCTIONS_OF_FOLDS[self._fold.op], self._element)
        while len(values) > 1:
            values = [function(e, (a, b)) for a, b in zip(values[::2], values[1::2], strict=True)]
        x = values[0]
        while x.kind.lanes > 1:
            x = function(e, _halves(self._body, x))
        return x

    def _best_place(self, best: Register, places: Register) -> Register:
        """Emit the place of the extreme of all lanes; of equal ones the first, or the last."""
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


def start_of(op: str, element: str) -> float:
    """Return the number that changes no result."""
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
