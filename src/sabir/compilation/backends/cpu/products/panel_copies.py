"""The copy of a panel by the job that reads it, from a matrix with stride 1 along columns or `k`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.elementwise.transposes import transposed
from sabir.compilation.backends.cpu.emit.body import kind_of
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Kind, Register
from sabir.compilation.backends.cpu.emit.jobs import lanes_before
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Emitter


class PanelSource(NamedTuple):
    """A matrix `[depth, columns]` in memory, which has stride 1 along one axis.

    `stride` is its stride along the other axis, in bytes. `lanes` is the number of columns of a vector.
    """

    element: str
    lanes: int
    base: Register
    stride: Register
    depth: Register
    columns: Register

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return element_bytes(self.element)


def copy_panel(
    e: Emitter, source: PanelSource, first: Register, width: int, target: Register, *, across: bool
) -> None:
    """Emit the copy of `width` columns from `first` on into a panel; columns past the last one are 0.

    With `across`, the matrix has stride 1 along `k`, and tiles of it are transposed in registers; else it
    has stride 1 along columns.
    """
    with e.loop(e.index(0), e.index(width), source.lanes) as v:
        to = e.offset(target, e.mul(v, source.size))
        if across:
            strip(e, source, e.add(first, v), to, width * source.size)
        else:
            _columns(e, source, e.add(first, v), to, width * source.size)


def copy_rows(
    e: Emitter, source: PanelSource, first: Register, panels: Sequence[Register], width: int, *, whole: bool
) -> None:
    """Emit the copy of columns from `first` on into several panels, row by row; columns have stride 1.

    Columns past the last one are 0. With `whole` there are none, and loads have no masks.
    """
    lanes, size, kind = source.lanes, source.size, kind_of(source.element, source.lanes)
    vectors = range(0, len(panels) * width, lanes)
    masks = [None if whole else lanes_before(e, e.add(first, v), source.columns, lanes) for v in vectors]
    start = e.offset(source.base, e.mul(first, size))
    with e.loop(e.index(0), source.depth) as k:
        row, line = e.offset(start, e.mul(k, source.stride)), e.mul(k, width * size)
        for v, mask in zip(vectors, masks, strict=True):
            panel, place = divmod(v, width)
            x = e.load(e.offset(row, e.index(v * size)), kind, mask, align=size)
            e.store(x, e.offset(e.offset(panels[panel], line), e.index(place * size)), align=lanes * size)


def _columns(e: Emitter, source: PanelSource, first: Register, target: Register, line: int) -> None:
    """Emit the copy of a vector of columns with stride 1, row by row."""
    mask = lanes_before(e, first, source.columns, source.lanes)
    start, kind = e.offset(source.base, e.mul(first, source.size)), kind_of(source.element, source.lanes)
    with e.loop(e.index(0), source.depth) as k:
        x = e.load(e.offset(start, e.mul(k, source.stride)), kind, mask)
        e.store(x, e.offset(target, e.mul(k, line)), align=source.lanes * source.size)


def strip(e: Emitter, source: PanelSource, first: Register, target: Register, line: int) -> None:
    """Emit the copy of a vector of columns of a matrix with stride 1 along `k`.

    Square tiles are transposed; the rest of `k`, and a partial vector, are gathered step by step. `line` is
    the bytes between steps of `k` in the target.
    """
    lanes, size = source.lanes, source.size
    kind = kind_of(source.element, lanes)
    inside = e.compare("icmp sle", e.add(first, lanes), source.columns)
    whole = e.mul(e.binary("udiv", source.depth, e.index(lanes)), lanes)
    tiled = e.select(inside, whole, e.index(0))
    corner = e.offset(source.base, e.mul(first, source.stride))
    with e.loop(e.index(0), tiled, lanes) as k:
        start = e.offset(corner, e.mul(k, size))
        rows = [e.load(e.offset(start, e.mul(source.stride, n)), kind) for n in range(lanes)]
        for n, x in enumerate(transposed(e, rows)):
            e.store(x, e.offset(target, e.mul(e.add(k, n), line)), align=lanes * size)
    mask = lanes_before(e, first, source.columns, lanes)
    with e.loop(tiled, source.depth) as k:
        x = gathered(e, e.offset(corner, e.mul(k, size)), source.stride, kind, mask)
        e.store(x, e.offset(target, e.mul(k, line)), align=lanes * size)


def gathered(e: Emitter, start: Register, stride: Register, kind: Kind, mask: Register) -> Register:
    """Emit the load of a vector of elements `stride` bytes apart; lanes outside the mask are 0."""
    steps = Register(
        f"<{', '.join(f'i64 {n}' for n in range(kind.lanes))}>", INDEX._replace(lanes=kind.lanes)
    )
    offsets = e.binary("mul", e.splat(stride, kind.lanes), steps)
    return e.gather(e.value(Kind("ptr", kind.lanes), f"getelementptr i8, {start}, {offsets}"), kind, mask)
