"""Packed operands of products: matrices in panels, in the order in which kernels read them."""

from __future__ import annotations

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


_TILED = 4  # bytes


class PackedOperand(NamedTuple):
    """The second operand of a product in panels: the bytes of one, and of each step along the batch axes."""

    buffer: Buffer
    panel: Size
    strides: list[Size]

    def start(self, builder: PlanBuilder, entry: Entry) -> list[Argument]:
        """Return where the panels of an entry begin."""
        builder.use(self.buffer, entry)
        return start_of(self.buffer)


def lanes_of(builder: PlanBuilder, element: str) -> int:
    """Return the lanes of the vectors of a product: the width of its panels follows from them."""
    return builder.target.vector_bits // 8 // max(4, element_bytes(element))


class Panels(NamedTuple):
    """A matrix `[batch..., k..., n]` in panels of a width: the size and the stride of each of its axes.

    Groups of neighbours are along the last `run` axes of `k`. With `winograd`, the axes of `k` are those of
    3x3 filters and their channels, and each has the matrices of Winograd's algorithm with so many results
    along an axis. A matrix of another element type than its panels has that of `source`.
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

    @property
    def panel(self) -> Size:
        """The bytes of a panel."""
        if self.group > 1:
            outer = len(self.depth) - self.run
            count = count_of([n for n, _ in self.depth[outer:]])
            groups = count_of([n for n, _ in self.depth[:outer]]) * ((count + (self.group - 1)) // self.group)
            return groups * (self.width * self.group) + 4 * self.width
        if self.winograd:
            line = self.width * element_bytes(self.element)
            return self.depth[-1][0] * (places_of(self.winograd) * line)
        return count_of([n for n, _ in self.depth]) * (self.width * element_bytes(self.element))

    @property
    def item(self) -> Size:
        """The bytes of the panels of an item of the batch."""
        return self.panel * ((self.columns[0] + (self.width - 1)) // self.width)


def packed_panels(builder: PlanBuilder, x: Expression, b: Located, panels: Panels) -> Buffer:
    """Return the memory of packed panels, which an entry before all that follow fills.

    A constant is packed once for all runs, unless it is repeated to a size that a run decides.
    """
    numbers = [n for axis in (*panels.batch, *panels.depth, panels.columns) for n in axis]
    constant = is_constant(builder.lowered, b) and not any(isinstance(n, Expr) for n in numbers)
    layout = f"{panels.element}/{b.offset}/{panels.batch}/{panels.depth}/{panels.columns}/{panels.width}"
    layout += f"/{panels.run}" if panels.group > 1 else ""
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
    """Return the entry that packs an operand; constants share a kernel that reads the width."""
    converted = "" if panels.source == panels.element else panels.source
    read = converted or panels.element
    size = element_bytes(read)
    any_width = target.kind == "packed" and panels.group == 1 and not panels.winograd
    batch, columns = panels.batch, panels.columns
    depth = _merged(panels.depth) if any_width else panels.depth
    packing = Packing(
        panels.element, len(batch), 0 if any_width else panels.width, lanes_of(builder, panels.element),
        next_column=columns[1] == 1, depth_axes=len(depth), group=panels.group, run=panels.run,
        next_row=target.kind == "arena" and _has_rows(panels),  # constants are packed once: less code
        winograd=panels.winograd, source=converted,
    )  # fmt: skip
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


def _has_rows(panels: Panels) -> bool:
    """Return whether elements of columns lie side by side, those of rows do not, and they have 4 bytes."""
    rows = panels.depth[-1][1] == 1 and panels.columns[1] != 1 and panels.source in {"", panels.element}
    return rows and panels.group == 1 and element_bytes(panels.element) >= _TILED


def _merged(axes: Sequence[tuple[Size, Size]]) -> list[tuple[Size, Size]]:
    """Return axes of which those that lie without gaps are one, in the same order of elements."""
    found = list(axes[:1])
    for size, stride in axes[1:]:
        count, outer = found[-1]
        if outer == stride * size:
            found[-1] = count * size, stride
        else:
            found.append((size, stride))
    return found


def panels_of(columns: Size, lanes: int) -> Size:
    """Return how many panels columns fill."""
    width = VECTORS * lanes
    return (columns + (width - 1)) // width
