"""Which operands a product reads where they lie: for few rows, a copy of the second one costs too much."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.products.tiles import FEW
from sabir.loops import Contract, Stored, element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.elementwise.nesting import Place
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.fusion.views import Located
    from sabir.compilation.plan.entries import Argument, Entry
    from sabir.loops import Expression, Size

_NEAR = 32  # elements from step to step of `k`, which the processor still fetches ahead
_MOST_ROWS = 512  # more read a panel so often that the copy costs little
_MOST_BYTES = 1 << 16  # of a matrix whose rows stay in the cache of a core while they are copied


def is_read_in_place(lowered: Lowered, x: Contract, a: Expression, at: Located, b: Located) -> bool:
    """Whether a product reads its first operand, which lies `at` a place: row by row, or transposed."""
    strides = at.strides
    if strides[-1] == 1 or a.shape[-1] == 1 or is_direct(lowered, x, b):
        return True
    first, end = a.rank - x.depth - x.rows, a.rank - x.depth
    rows = zip(a.shape[first:end], strides[first:end], strict=True)
    is_near = isinstance(strides[-1], int) and strides[-1] <= _NEAR
    return is_near and x.is_float and x.scale is None and any(n != 1 and step == 1 for n, step in rows)


class DirectOperand(NamedTuple):
    """The second operand where it lies: the bytes of a row, and of each step along the batch axes.

    In a `turned` one columns lie side by side: the bytes are those of a column.
    """

    place: Place
    panel: Size
    turned: bool
    strides: Sequence[Size]

    def start(self, builder: PlanBuilder, entry: Entry) -> list[Argument]:
        """Return where it begins."""
        return builder.pointer(self.place.located, self.place.element, entry)


def is_direct(lowered: Lowered, x: Contract, b: Located) -> bool:
    """Return whether a product reads its second operand, which lies at `b`, row by row in memory."""
    if x.rows > 1 or x.depth > 1 or not x.is_float or x.scale is not None:
        return False
    if x.b.element != x.element or x.a.element != x.element or is_constant(lowered, b):
        return False
    rows, columns = x.shape[-2:]
    depth = x.b.shape[-2]
    if isinstance(rows, int) and rows <= FEW and 1 in b.strides[-2:]:
        return columns != 0 and depth != 0
    if not isinstance(rows, int) or b.strides[-1] != 1:
        return False
    if not isinstance(columns, int) or not isinstance(depth, int):
        return False
    return rows <= _MOST_ROWS and 0 < depth * columns * element_bytes(x.element) <= _MOST_BYTES


def direct_operand(
    builder: PlanBuilder, x: Contract, b: Place, batch: Sequence[Size], entry: Entry
) -> DirectOperand | None:
    """Return the second operand of an entry, None for panels; `b` has its places along the batch axes."""
    if not is_direct(builder.lowered, x, b.located):
        return None
    size, strides = element_bytes(b.element), b.strides[: len(batch)]
    matrix = zip(x.b.shape[-2:], b.located.strides[-2:], strict=True)
    axes = [*zip(batch, strides, strict=True), *matrix]
    entry.reaches.append(builder.reach(b.located, b.element, axes))
    turned = b.located.strides[-1] != 1
    line = b.located.strides[-1 if turned else -2] * size
    return DirectOperand(b, line, turned, [stride * size for stride in strides])


def is_constant(lowered: Lowered, located: Located) -> bool:
    """Return whether an operand is the same in all runs."""
    base = located.base
    if not isinstance(base, Stored):
        return False
    return base.array is not None or base.slot in lowered.prepared.constants
