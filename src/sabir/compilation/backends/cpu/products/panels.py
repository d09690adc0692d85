"""Packed operands of products: the buffers of panels, and the entries that pack them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.products.direct import is_constant
from sabir.compilation.backends.cpu.products.packing import Packing
from sabir.compilation.backends.cpu.products.tiles import VECTORS
from sabir.compilation.backends.cpu.products.winograd_kernel import places_of
from sabir.compilation.plan.entries import Argument, Buffer, BufferKind, Entry, count_of, start_of
from sabir.ir import Expr
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.emit.terms import Groups
    from sabir.compilation.fusion.views import Located
    from sabir.loops import Expression, Size


_MOST_TAPS = 9  # of a run, whose tiles are unrolled
_TILED = 4  # bytes of an element at least, to transpose tiles


class PackedOperand(NamedTuple):
    """The second operand of a product in panels: the bytes of one, and the strides of the batch in bytes."""

    buffer: Buffer
    panel: Size
    strides: list[Size]

    def start(self, builder: PlanBuilder, entry: Entry) -> list[Argument]:
        """Return the arguments that place the panels, which the entry uses."""
        builder.use(self.buffer, entry)
        return start_of(self.buffer)


def lanes_of(builder: PlanBuilder, element: str) -> int:
    """Return the lanes of the vectors of a product, whose elements count as 4 bytes at least."""
    return builder.target.vector_bits // 8 // max(4, element_bytes(element))


class Panels(NamedTuple):
    """The panels of a matrix `[batch..., k..., n]`, with the (size, stride) of each of its axes, in elements.

    Groups of `group` adjacent elements are along the last `run` axes of `k`. If `winograd` is not 0, the
    matrix is filters `[3, 3, channels, n]`, transformed for `winograd` results of a tile along an axis.
    `source` is the element type of the matrix; "" is that of the panels. If `fields` is above 1, words of
    panels pack so many integers along the last axis of `k`.
    """

    element: str
    batch: Sequence[tuple[Size, Size]]
    depth: Sequence[tuple[Size, Size]]
    columns: tuple[Size, Size]
    width: int
    group: Groups = 1
    run: int = 1
    winograd: int = 0
    source: str = ""
    fields: int = 1

    @property
    def panel(self) -> Size:
        """The bytes of a panel, with the column sums of integers."""
        if self.group > 1:
            outer = len(self.depth) - self.run
            count = count_of([n for n, _ in self.depth[outer:]])
            groups = count_of([n for n, _ in self.depth[:outer]]) * ((count + (self.group - 1)) // self.group)
            return groups * (self.width * self.group) + 4 * self.width
        if self.winograd:
            line = self.width * element_bytes(self.element)
            return self.depth[-1][0] * (places_of(self.winograd) * line)
        if self.fields > 1:
            return count_of([n for n, _ in self.depth]) // self.fields * (self.width * _TILED)
        return count_of([n for n, _ in self.depth]) * (self.width * element_bytes(self.element))

    @property
    def item(self) -> Size:
        """The bytes of the panels of an item of the batch."""
        return self.panel * ((self.columns[0] + (self.width - 1)) // self.width)


def packed_panels(builder: PlanBuilder, x: Expression, b: Located, panels: Panels) -> Buffer:
    """Return the buffer of packed panels; the first call for a layout adds the entry that fills it.

    Constants are packed once, in a setup entry, unless a size is symbolic, as after a broadcast.
    """
    numbers = [n for axis in (*panels.batch, *panels.depth, panels.columns) for n in axis]
    constant = is_constant(builder.lowered, b) and not any(isinstance(n, Expr) for n in numbers)
    layout = f"{panels.element}/{b.offset}/{panels.batch}/{panels.depth}/{panels.columns}/{panels.width}"
    layout += f"/{panels.run}" if panels.group > 1 else ""
    layout += f"/fields {panels.fields}" if panels.fields > 1 else ""
    layout += f"/winograd {panels.winograd}" if panels.winograd else ""
    found = builder.buffers.get((b.base, layout))
    if found is None:
        kind: BufferKind = "packed" if constant else "arena"
        size = panels.item * count_of([n for n, _ in panels.batch])
        found = builder.buffers[b.base, layout] = builder.new_buffer(kind, panels.element, (), size=size)
        entry = _packing(builder, x, b, panels, found)
        (builder.setup if constant else builder.entries).append(entry)
    return found


def _packing(builder: PlanBuilder, x: Expression, b: Located, panels: Panels, target: Buffer) -> Entry:
    """Return the entry that packs an operand; for most constants, the width is an argument of the kernel."""
    converted = "" if panels.source == panels.element else panels.source
    read = converted or panels.element
    size = element_bytes(read)
    any_width = target.kind == "packed" and panels.group == panels.fields == 1 and not panels.winograd
    batch, columns = panels.batch, panels.columns
    depth = _merged(panels.depth) if any_width else panels.depth
    packing = Packing(
        panels.element, len(batch), 0 if any_width else panels.width, lanes_of(builder, panels.element),
        next_column=columns[1] == 1, depth_axes=len(depth), group=panels.group, run=panels.run,
        next_row=target.kind == "arena" and _has_rows(panels),  # constants are packed once: fewer kernels
        winograd=panels.winograd, source=converted, fields=panels.fields,
        taps=_taps(panels) if target.kind == "arena" else 0,
    )  # fmt: skip
    if packing.by_elements:
        packing = replace(packing, order=_loop_order(depth))
    axes = [*batch, *depth, columns]
    entry = Entry([], nodes=builder.origins.labels([x]))
    source = builder.pointer(b, read, entry)
    entry.reaches.append(builder.reach(b, read, axes))
    builder.use(target, entry)
    values = {
        "batch": [n for n, _ in batch], "depths": [n for n, _ in depth], "columns": columns[0],
        "source": source, "batch_strides": [stride * size for _, stride in batch],
        "depth_strides": [stride * size for _, stride in depth], "column_stride": columns[1] * size,
        "target": start_of(target), "item": panels.item, **({"width": panels.width} if any_width else {}),
    }  # fmt: skip
    entry.choices.append((None, 0, packing, packing.signature.pack(values)))
    entry.writes, entry.loops = [target], packing.loops
    return entry


def _taps(panels: Panels) -> int:
    """Return the length of the runs of filters `[n, channels, taps...]` in memory; 0 for another order."""
    *outer, (_, step) = panels.depth
    if panels.columns[1] == 1 or panels.winograd or not _is_plain(panels):
        return 0
    count: Size = 1
    for size, stride in reversed(outer):
        if stride != count:
            return 0
        count *= size
    return count if isinstance(count, int) and 1 < count <= _MOST_TAPS and step == count else 0


def _is_plain(panels: Panels) -> bool:
    """Return whether panels have the elements of the matrix as they are, of 4 bytes or more."""
    same = panels.source in {"", panels.element} and panels.group == panels.fields == 1
    return same and element_bytes(panels.element) >= _TILED


def _loop_order(depth: Sequence[tuple[Size, Size]]) -> tuple[int, ...]:
    """Return the axes of `k` by their strides, the largest first; () for the order of the panels."""
    strides = [stride for _, stride in depth if isinstance(stride, int)]
    if len(strides) < len(depth):
        return ()
    order = sorted(range(len(depth)), key=lambda axis: -abs(strides[axis]))
    return () if order == list(range(len(depth))) else tuple(order)


def _has_rows(panels: Panels) -> bool:
    """Return whether packing transposes tiles: stride 1 along `k`, not along `n`, and 4 bytes or more."""
    return panels.depth[-1][1] == 1 and panels.columns[1] != 1 and _is_plain(panels)


def _merged(axes: Sequence[tuple[Size, Size]]) -> list[tuple[Size, Size]]:
    """Return the axes, in order; adjacent ones merge if the outer stride is `size * stride` of the inner."""
    found = list(axes[:1])
    for size, stride in axes[1:]:
        count, outer = found[-1]
        if outer == stride * size:
            found[-1] = count * size, stride
        else:
            found.append((size, stride))
    return found


def panels_of(columns: Size, lanes: int) -> Size:
    """Return the number of panels of the usual width that hold `columns`."""
    width = VECTORS * lanes
    return (columns + (width - 1)) // width
