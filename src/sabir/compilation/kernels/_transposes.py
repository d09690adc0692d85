"""Copies that change the order of axes: a tensor is read along one axis and written along another.

Both sides touch whole vectors: a square tile is read row by row, transposed in registers, and written row by
row. Elementwise steps are computed on the rows that are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.kernels._body import Point, from_memory, memory_kind
from sabir.compilation.kernels._jobs import at, jobs, mask_of
from sabir.compilation.kernels._nest import ANY, NEXT, Fold, Load, Nest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.kernels._body import Body
    from sabir.compilation.kernels._emitter import Emitter, Register

_MOST_STEPS = 8  # the code of a tile repeats them for each row
_LINES = 4  # vectors along the read axis of one job
_ALONG = 256  # elements along the written axis of one job
_LANE = 16  # bytes between which the shuffles of every width move elements cheaply


def axis_of_reads(nest: Nest) -> int | None:
    """Return the axis along which tiles are read, None where a nest is no transposing copy.

    Every store advances by one along the inner axis, and a load along another.
    """
    if nest.axes <= 1 or len(nest.steps) > _MOST_STEPS or any(isinstance(s, Fold) for s in nest.steps):
        return None
    if any(nest.accesses[access].strides[nest.inner] != NEXT for access, _ in nest.stores):
        return None
    axes = {
        nest.accesses[step.access].strides.index(NEXT)
        for step in nest.steps
        if isinstance(step, Load) and _is_read_across(nest, step)
    }
    return axes.pop() if len(axes) == 1 else None


def _is_read_across(nest: Nest, step: Load) -> bool:
    strides = nest.accesses[step.access].strides
    return strides[nest.inner] == ANY and NEXT in strides


def transposing(body: Body, across: int) -> None:
    """Emit the loops over tiles, which are read along the axis `across`."""
    e, inner, lanes = body.e, body.nest.inner, body.nest.lanes
    outer, width = [a for a in range(body.nest.axes) if a not in {across, inner}], lanes * _LINES
    groups, chunks = _parts(e, body.sizes[across], width), _parts(e, body.sizes[inner], _ALONG)
    with jobs(body, outer, groups, chunks) as (indices, (group, chunk)):
        first, last = _bounds(e, group, width, body.sizes[across])
        start, stop = _bounds(e, chunk, _ALONG, body.sizes[inner])
        with e.loop(start, stop, lanes) as place, e.loop(first, last, lanes) as row:
            _tile(body, across, at(at(indices, across, row), inner, place), (last, stop))


def _tile(body: Body, across: int, corner: list[Register], ends: tuple[Register, Register]) -> None:
    """Emit the copy of one tile, under masks where it is not whole."""
    e, lanes = body.e, body.nest.lanes
    places = corner[across], corner[body.nest.inner]
    inside = [e.compare("icmp sle", e.add(n, lanes), end) for n, end in zip(places, ends, strict=True)]
    whole = e.binary("and", *inside)
    with e.when(whole):
        _Tile(body, across, corner, None).copy()
    with e.when(e.binary("xor", whole, e.constant(whole.kind, 1))):
        _Tile(body, across, corner, ends).copy()


def _parts(e: Emitter, size: Register, width: int) -> Register:
    return e.binary("udiv", e.add(size, width - 1), e.index(width))


def _bounds(e: Emitter, number: Register, width: int, size: Register) -> tuple[Register, Register]:
    """Return the first index of a part of an axis, and the end."""
    first = e.mul(number, width)
    return first, e.least(e.add(first, width), size)


class _Tile:
    """One tile at a corner; `ends` bound both axes where it is not whole."""

    def __init__(
        self, body: Body, across: int, corner: list[Register], ends: tuple[Register, Register] | None
    ) -> None:
        self.body, self.e, self.across, self.corner, self.ends = body, body.e, across, corner, ends

    def copy(self) -> None:
        """Emit the loads, the transposition and the stores."""
        body, e, nest = self.body, self.e, self.body.nest
        tiles: dict[int, list[Register]] = {}
        for number, step in enumerate(nest.steps):
            if isinstance(step, Load) and _is_read_across(nest, step):
                tiles[number] = transposed(body, self._rows(step))
        mask = None if self.ends is None else mask_of(body, self.corner[nest.inner], self.ends[1])
        for n in range(nest.lanes):
            row = e.add(self.corner[self.across], n)
            values = {number: rows[n] for number, rows in tiles.items()}
            point = Point(at(self.corner, self.across, row), nest.lanes, mask, values)
            if self.ends is None:
                self._store(point)
                continue
            with e.when(e.compare("icmp slt", row, self.ends[0])):
                self._store(point)

    def _rows(self, step: Load) -> list[Register]:
        """Emit the loads of a tile along the axis of reads; rows past the end repeat the last."""
        body, e, nest = self.body, self.e, self.body.nest
        place, mask = self.corner[nest.inner], None
        rows: list[Register] = []
        if self.ends is not None:
            mask = mask_of(body, self.corner[self.across], self.ends[0])
        for n in range(nest.lanes):
            index = e.add(place, n)
            index = index if self.ends is None else e.least(index, e.add(self.ends[1], -1))
            address = body.address(step.access, Point(at(self.corner, nest.inner, index)))
            rows.append(e.load(address, memory_kind(step.element, nest.lanes), mask))
        return rows

    def _store(self, point: Point) -> None:
        for number in point.values:
            element = self.body.nest.steps[number].element
            point.values[number] = from_memory(self.e, point.values[number], element)
        for access, number in self.body.nest.stores:
            self.body.write(access, self.body.wide(number, point), point)


def transposed(body: Body, rows: Sequence[Register]) -> list[Register]:
    """Emit the columns of a square tile of as many rows as lanes.

    First, parts of 16 bytes are transposed by interleaving pairs of rows, then these parts change places.
    """
    lanes, kind = len(rows), rows[0].kind
    part = min(lanes, _LANE // (kind.bits // 8))
    groups = [[row] for row in rows]  # of one more row at each step; within a group by column
    unit = 1
    while unit < part:
        groups = [_zipped(body, a, b, unit, part) for a, b in zip(groups[::2], groups[1::2], strict=True)]
        unit *= 2
    # groups[g][c] has, in part p, column c of part p for the rows of the group g
    found: list[Register | None] = [None] * lanes
    for column in range(part):
        blocks = {0: [group[column] for group in groups]}
        bit = 1
        while bit < len(groups):
            blocks = _unzipped(body, blocks, bit, part)
            bit *= 2
        for place, (x,) in blocks.items():
            found[place * part + column] = x
    return [x for x in found if x is not None]


def _zipped(body: Body, a: Sequence[Register], b: Sequence[Register], unit: int, part: int) -> list[Register]:
    """Interleave units of two registers in each part: those of its lower half, then of its upper."""
    found: list[Register] = []
    lanes, half = a[0].kind.lanes, part // 2
    for x, y in zip(a, b, strict=True):
        for upper in (0, half):
            order = [
                source * lanes + start + upper + u + k
                for start in range(0, lanes, part)
                for u in range(0, half, unit)
                for source in (0, 1)
                for k in range(unit)
            ]
            found.append(_shuffled(body, x, y, order))
    return found


def _unzipped(
    body: Body, blocks: dict[int, list[Register]], bit: int, part: int
) -> dict[int, list[Register]]:
    """Take every second part of two registers: the even ones, then the odd ones."""
    found: dict[int, list[Register]] = {}
    for place, registers in blocks.items():
        for odd in (0, 1):
            count = 2 * registers[0].kind.lanes // part
            order = [p * part + k for p in range(odd, count, 2) for k in range(part)]
            pairs = zip(registers[::2], registers[1::2], strict=True)
            found[place + odd * bit] = [_shuffled(body, x, y, order) for x, y in pairs]
    return found


def _shuffled(body: Body, x: Register, y: Register, order: Sequence[int]) -> Register:
    places = ", ".join(f"i32 {n}" for n in order)
    return body.e.value(x.kind, f"shufflevector {x}, {y}, <{len(order)} x i32> <{places}>")
