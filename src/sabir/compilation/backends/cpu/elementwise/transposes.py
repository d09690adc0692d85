"""Copies that change the order of axes: a tensor is read along one axis and written along another.

Loads and stores are of whole vectors: a square tile is loaded row by row, transposed in registers, and stored
row by row. Elementwise steps are computed on the transposed rows.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sabir.compilation.backends.cpu.emit.body import Point, from_memory, memory_kind
from sabir.compilation.backends.cpu.emit.emitter import BOOL, Emitter, Register
from sabir.compilation.backends.cpu.emit.jobs import at, jobs, mask_of
from sabir.compilation.backends.cpu.emit.nest import ANY, NEXT, SHORT, Accumulated, Fold, Load, Nest

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from sabir.compilation.backends.cpu.emit.body import Body

_Range: TypeAlias = "tuple[Register, Register, int]"  # the start, the end, the step

_MOST_STEPS = 8  # steps of a nest: the code of a tile repeats them for each row
_LINES = 4  # vectors of one job along the axis of loads
_ALONG = 256  # elements of one job along the axis of stores
_LONG = 1024  # elements of one job along the long axis, if the other one is short
_LANE = 16  # bytes: within such a part of a vector, shuffles of every vector width are cheap


def axis_of_reads(nest: Nest) -> int | None:
    """Return the axis along which tiles are loaded, None if a nest is no transposing copy.

    In a transposing copy every store has stride 1 along the inner axis, and there are loads with stride 1
    along exactly one other axis.
    """
    if (
        nest.axes <= 1
        or len(nest.steps) > _MOST_STEPS
        or any(isinstance(s, (Accumulated, Fold)) for s in nest.steps)
    ):
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


def can_transpose(nest: Nest) -> bool:
    """Return whether a nest is a transposing copy, whose tiles depend on which axes are short."""
    return axis_of_reads(nest) is not None


def transposing(body: Body, across: int) -> None:
    """Emit the loops over tiles, which are loaded along the axis `across`."""
    e, inner = body.e, body.nest.inner
    outer = [axis for axis in range(body.nest.axes) if axis not in {across, inner}]
    shape = _Shape.of(body.nest, across)
    groups, chunks = _parts(e, body.sizes[across], shape.group), _parts(e, body.sizes[inner], shape.chunk)
    with jobs(body, outer, groups, chunks) as (indices, (group, chunk)):
        first, last = _bounds(e, group, shape.group, body.sizes[across])
        start, stop = _bounds(e, chunk, shape.chunk, body.sizes[inner])
        with _tiles(e, (first, last, shape.wide), (start, stop, shape.deep)) as (row, place):
            _tile(body, across, shape, at(at(indices, across, row), inner, place), (last, stop))


def _tile(
    body: Body, across: int, shape: _Shape, corner: list[Register], ends: tuple[Register, Register]
) -> None:
    """Emit the code of a whole tile, and that of a tile bounded by `ends`, the ends of both axes.

    Along a short axis, both are bounded.
    """
    e = body.e
    sides = [(corner[across], shape.wide, ends[0]), (corner[body.nest.inner], shape.deep, ends[1])]
    whole = e.constant(BOOL, 1)
    bounds: list[Register | None] = []
    for first, count, end in sides:
        is_short = count < body.nest.lanes
        bounds.append(end if is_short else None)
        if not is_short:
            whole = e.binary("and", whole, e.compare("icmp sle", e.add(first, count), end))
    with e.when(whole):
        _Tile(body, across, shape, corner, *bounds).copy()
    with e.when(e.binary("xor", whole, e.constant(BOOL, 1))):
        _Tile(body, across, shape, corner, *ends).copy()


@contextlib.contextmanager
def _tiles(e: Emitter, wide: _Range, deep: _Range) -> Generator[tuple[Register, Register]]:
    """Emit the loops over the tiles of a job; a loop along a short axis, of one iteration, is outermost."""
    if wide[2] < deep[2]:
        with e.loop(*wide) as row, e.loop(*deep) as place:
            yield row, place
    else:
        with e.loop(*deep) as place, e.loop(*wide) as row:
            yield row, place


class _Shape(NamedTuple):
    """The numbers of elements of a tile, `wide` by `deep`, and of a job, `group` by `chunk`.

    The first of each is along the axis of loads, the second along the axis of stores.
    """

    wide: int
    deep: int
    group: int
    chunk: int

    @staticmethod
    def of(nest: Nest, across: int) -> _Shape:
        """Return the tiles and jobs of a nest: tiles are square, or narrow if an axis is short."""
        lanes = nest.lanes
        if lanes > SHORT and across in nest.short:
            return _Shape(SHORT, lanes, SHORT, _LONG)
        if lanes > SHORT and nest.inner in nest.short:
            return _Shape(lanes, SHORT, _LONG, SHORT)
        return _Shape(lanes, lanes, lanes * _LINES, _ALONG)


def _parts(e: Emitter, size: Register, width: int) -> Register:
    return e.binary("udiv", e.add(size, width - 1), e.index(width))


def _bounds(e: Emitter, number: Register, width: int, size: Register) -> tuple[Register, Register]:
    """Emit the first index of a part of an axis, and its end."""
    first = e.mul(number, width)
    return first, e.least(e.add(first, width), size)


class _Tile:
    """One tile at a corner; `last` and `stop` are the ends of the axes of loads and stores.

    None as an end means that the tile is whole along the axis.
    """

    def __init__(
        self, body: Body, across: int, shape: _Shape, corner: list[Register], last: Register | None,
        stop: Register | None,
    ) -> None:  # fmt: skip
        self.body, self.e, self.across, self.shape, self.corner = body, body.e, across, shape, corner
        self.last, self.stop = last, stop

    def copy(self) -> None:
        """Emit the loads, the transposition in registers, and the stores."""
        body, e, nest, deep = self.body, self.e, self.body.nest, self.shape.deep
        tiles: dict[int, list[Register]] = {}
        for number, step in enumerate(nest.steps):
            if isinstance(step, Load) and _is_read_across(nest, step):
                tiles[number] = transposed(e, self._rows(step))
        mask = None if self.stop is None else mask_of(body, self.corner[nest.inner], self.stop, deep)
        targets = [self._first(access) for access, _ in nest.stores]
        for n in range(self.shape.wide):
            row = e.add(self.corner[self.across], n)
            values = {number: rows[n] for number, rows in tiles.items()}
            point = Point(at(self.corner, self.across, row), deep, mask, values)
            if self.last is None:
                self._store(point, targets)
            else:
                with e.when(e.compare("icmp slt", row, self.last)):
                    self._store(point, targets)
            targets = [
                e.offset(target, body.step(access, self.across))
                for target, (access, _) in zip(targets, nest.stores, strict=True)
            ]

    def _first(self, access: int) -> Register:
        """Emit the address of the corner, from which the addresses of the rows are computed one by one.

        It is opaque: else LLVM searches for ways to keep the address of each row in a register, which takes
        as long as the rest of the kernel.
        """
        return self.e.opaque(self.body.address(access, Point(self.corner)))

    def _rows(self, step: Load) -> list[Register]:
        """Emit the loads of the rows of a tile; rows past the end repeat the last one."""
        body, e, inner, wide = self.body, self.e, self.body.nest.inner, self.shape.wide
        mask = None if self.last is None else mask_of(body, self.corner[self.across], self.last, wide)
        rows: list[Register] = []
        base, stride = self._first(step.access), body.stride(step.access, inner)
        most = None if self.stop is None else e.add(e.binary("sub", self.stop, self.corner[inner]), -1)
        address = base
        for n in range(self.shape.deep):
            if most is not None:
                address = e.offset(base, e.mul(e.least(e.index(n), most), stride))
            elif n:
                address = e.offset(address, stride)
            rows.append(e.load(address, memory_kind(step.element, wide), mask))
        return rows

    def _store(self, point: Point, targets: Sequence[Register]) -> None:
        for number in point.values:
            element = self.body.nest.steps[number].element
            point.values[number] = from_memory(self.e, point.values[number], element)
        for (access, number), target in zip(self.body.nest.stores, targets, strict=True):
            self.body.write(access, self.body.wide(number, point), point, target)


def transposed(e: Emitter, rows: Sequence[Register]) -> list[Register]:
    """Emit the transposition of a tile `[rows, lanes]`: it is square, or one of both is `SHORT`."""
    deep, wide = len(rows), rows[0].kind.lanes
    if wide < deep:
        joined = [_joined(e, rows[n::wide]) for n in range(wide)]
        return _zipped_parts(e, joined, wide)[0]
    if deep < wide:
        (columns,) = _zipped_parts(e, rows, deep)
        return [_part(e, columns[n % deep], n // deep * deep, deep) for n in range(wide)]
    return _square(e, rows)


def _joined(e: Emitter, rows: Sequence[Register]) -> Register:
    """Emit the concatenation of vectors."""
    while len(rows) > 1:
        kind = rows[0].kind
        wide = kind._replace(lanes=2 * kind.lanes)
        places = ", ".join(f"i32 {n}" for n in range(wide.lanes))
        rows = [
            e.value(wide, f"shufflevector {x}, {y}, <{wide.lanes} x i32> <{places}>")
            for x, y in zip(rows[::2], rows[1::2], strict=True)
        ]
    return rows[0]


def _part(e: Emitter, x: Register, first: int, count: int) -> Register:
    places = ", ".join(f"i32 {first + n}" for n in range(count))
    kind = x.kind._replace(lanes=count)
    return e.value(kind, f"shufflevector {x}, {x.kind} poison, <{count} x i32> <{places}>")


def _zipped_parts(e: Emitter, rows: Sequence[Register], part: int) -> list[list[Register]]:
    """Emit the transposition of squares of `part` rows by `part` lanes; return columns by groups of rows."""
    groups = [[row] for row in rows]
    unit = 1
    while unit < part:
        groups = [_zipped(e, a, b, unit, part) for a, b in zip(groups[::2], groups[1::2], strict=True)]
        unit *= 2
    return groups


def _square(e: Emitter, rows: Sequence[Register]) -> list[Register]:
    """Emit the columns of a square tile, with as many rows as lanes.

    First, squares whose rows have 16 bytes are transposed by interleaving pairs of registers; then these
    16-byte parts are exchanged between registers.
    """
    lanes, kind = len(rows), rows[0].kind
    part = min(lanes, _LANE // (kind.bits // 8))
    groups = _zipped_parts(e, rows, part)
    # part p of groups[g][c] is column p * part + c of the tile, for the rows of group g
    found: list[Register | None] = [None] * lanes
    for column in range(part):
        blocks = {0: [group[column] for group in groups]}
        bit = 1
        while bit < len(groups):
            blocks = _unzipped(e, blocks, bit, part)
            bit *= 2
        for place, (x,) in blocks.items():
            found[place * part + column] = x
    return [x for x in found if x is not None]


def _zipped(e: Emitter, a: Sequence[Register], b: Sequence[Register], unit: int, part: int) -> list[Register]:
    """Emit the interleaving of units of two registers in each part: of its lower half, then of its upper."""
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
            found.append(_shuffled(e, x, y, order))
    return found


def _unzipped(
    e: Emitter, blocks: dict[int, list[Register]], bit: int, part: int
) -> dict[int, list[Register]]:
    """Emit, for each pair of registers, a register of their even parts and one of their odd parts."""
    found: dict[int, list[Register]] = {}
    for place, registers in blocks.items():
        for odd in (0, 1):
            count = 2 * registers[0].kind.lanes // part
            order = [p * part + k for p in range(odd, count, 2) for k in range(part)]
            pairs = zip(registers[::2], registers[1::2], strict=True)
            found[place + odd * bit] = [_shuffled(e, x, y, order) for x, y in pairs]
    return found


def _shuffled(e: Emitter, x: Register, y: Register, order: Sequence[int]) -> Register:
    places = ", ".join(f"i32 {n}" for n in order)
    return e.value(x.kind, f"shufflevector {x}, {y}, <{len(order)} x i32> <{places}>")
