"""Packed operands of products: matrices in panels, in the order in which kernels read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation._plan import Argument, Buffer, BufferKind, BufferNumber, Entry, Offset, count_of
from sabir.compilation._tiles import VECTORS
from sabir.compilation.kernels import Packing, element_bytes
from sabir.loops import Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation._building import PlanBuilder
    from sabir.compilation._views import Located
    from sabir.compilation.kernels import Groups
    from sabir.loops import Expression, Size


class PackedOperand(NamedTuple):
    """The second operand of a product in panels: the bytes of one, and of each step along the batch axes."""

    buffer: Buffer
    panel: Size
    strides: list[Size]

    def arguments(self) -> list[Argument]:
        return [BufferNumber(self.buffer), Offset(self.buffer, 0)]


def lanes_of(builder: PlanBuilder, element: str) -> int:
    """Return the lanes of the vectors of a product: the width of its panels follows from them."""
    return builder.host.vector_bits // 8 // max(4, element_bytes(element))


class Panels(NamedTuple):
    """A matrix `[batch..., k..., n]` in panels of a width: the size and the stride of each of its axes.

    Groups of neighbours are along the last `run` axes of `k`.
    """

    element: str
    batch: Sequence[tuple[Size, Size]]
    depth: Sequence[tuple[Size, Size]]
    columns: tuple[Size, Size]
    width: int
    group: Groups = 1
    run: int = 1

    @property
    def panel(self) -> Size:
        """The bytes of a panel."""
        if self.group > 1:
            outer = len(self.depth) - self.run
            count = count_of([n for n, _ in self.depth[outer:]])
            groups = count_of([n for n, _ in self.depth[:outer]]) * ((count + (self.group - 1)) // self.group)
            return groups * (self.width * self.group) + 4 * self.width
        return count_of([n for n, _ in self.depth]) * (self.width * element_bytes(self.element))

    @property
    def item(self) -> Size:
        """The bytes of the panels of an item of the batch."""
        return self.panel * ((self.columns[0] + (self.width - 1)) // self.width)


def packed_panels(builder: PlanBuilder, x: Expression, b: Located, panels: Panels) -> Buffer:
    """Return the memory of packed panels, which an entry before all that follow fills."""
    constant = isinstance(b.base, Stored) and b.base.slot in builder.lowered.prepared.constants
    layout = f"{panels.element}/{b.offset}/{panels.batch}/{panels.depth}/{panels.columns}/{panels.width}"
    layout += f"/{panels.run}" if panels.group > 1 else ""
    found = builder.buffers.get((b.base, layout))
    if found is None:
        kind: BufferKind = "packed" if constant else "arena"
        size = panels.item * count_of([n for n, _ in panels.batch])
        found = builder.buffers[b.base, layout] = builder.new_buffer(kind, panels.element, (), size=size)
        entry = _packing(builder, x, b, panels, found, for_all=constant and panels.group == 1)
        (builder.setup if constant else builder.entries).append(entry)
    return found


def _packing(
    builder: PlanBuilder, x: Expression, b: Located, panels: Panels, target: Buffer, *, for_all: bool
) -> Entry:
    """Return the entry that packs an operand; `for_all` takes the kernel of all widths."""
    size = element_bytes(panels.element)
    batch, columns = panels.batch, panels.columns
    depth = _merged(panels.depth) if for_all else panels.depth
    packing = Packing(
        panels.element, len(batch), 0 if for_all else panels.width, lanes_of(builder, panels.element),
        next_column=columns[1] == 1, depth_axes=len(depth), group=panels.group, run=panels.run,
    )  # fmt: skip
    axes = [*batch, *depth, columns]
    entry = Entry([], nodes=builder.origins.labels([x]))
    arguments: list[Argument] = [n for n, _ in axes]
    entry.writes, entry.axes = [target], len(arguments)
    arguments += builder.pointer(b, panels.element, entry)
    arguments += [stride * size for _, stride in axes]
    entry.reaches.append(builder.reach(b, panels.element, axes))
    builder.use(target, entry)
    entry.choices.append((
        None,
        0,
        packing,
        [
            *arguments,
            BufferNumber(target),
            Offset(target, 0),
            panels.item,
            *([panels.width] if for_all else []),
        ],
    ))
    return entry


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
