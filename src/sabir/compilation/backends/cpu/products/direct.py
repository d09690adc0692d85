"""The choice to read operands in place or to copy them: for few rows, packing costs too much."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.plan.decisions import Reason
from sabir.loops import Contract, Stored, element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.elementwise.nesting import Place
    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.fusion.views import Located
    from sabir.compilation.plan.entries import Argument, Entry
    from sabir.loops import Expression, Size

# why an operand is copied before it is read
_BY_ROWS = Reason("integers and weights with scales are read row by row")
_ROWS_APART = Reason("neither its rows nor its columns are side by side in memory")
_SYMBOLIC_STRIDE = Reason("the distance of its columns is symbolic")
_CONVOLUTION = Reason("a convolution reads its filters in panels")
_GROUPED = Reason("integers are added up in groups, which panels have side by side")
_SCALED = Reason("weights with scales are widened from panels")
_CONVERTED = Reason("its elements are converted")
CONSTANT = Reason("it is constant")
_EMPTY = Reason("it is empty")
_SYMBOLIC_ROWS = Reason("the number of rows is symbolic")
_SYMBOLIC = Reason("its size is symbolic")
_COLUMNS_APART = Reason("its columns are not side by side in memory")


def why_copied(
    heuristics: Heuristics, lowered: Lowered, x: Contract, a: Expression, at: Located, b: Located
) -> Reason | None:
    """Return why a product copies its first operand, which is in memory `at`; None if it reads it in place.

    If `b` is packed, kernels read operands with stride 1 along `k`, and transposed matrices of floats: stride
    1 along an axis of rows, and a small stride along `k`. If `b` is read in place, any stride along `k`.
    """
    strides = at.strides
    if strides[-1] == 1 or a.shape[-1] == 1 or why_packed(heuristics, lowered, x, b) is None:
        return None
    if not x.is_float or x.scale is not None:
        return _BY_ROWS
    if not isinstance(strides[-1], int):
        return _SYMBOLIC_STRIDE
    if strides[-1] > heuristics.near_stride:
        return Reason("its columns are {} elements apart > {}", (strides[-1], heuristics.near_stride))
    first, end = a.rank - x.depth - x.rows, a.rank - x.depth
    rows = zip(a.shape[first:end], strides[first:end], strict=True)
    return None if any(n != 1 and step == 1 for n, step in rows) else _ROWS_APART


class DirectOperand(NamedTuple):
    """The second operand, read in place: `panel` is its stride from row to row, in bytes.

    If it is `transposed`, it has stride 1 along `k`, and `panel` is the stride from column to column.
    `strides` are those of the batch axes, in bytes.
    """

    place: Place
    panel: Size
    transposed: bool
    strides: Sequence[Size]

    def start(self, builder: PlanBuilder, entry: Entry) -> list[Argument]:
        """Return the arguments that place the operand."""
        return builder.pointer(self.place.located, self.place.element, entry)


def why_packed(heuristics: Heuristics, lowered: Lowered, x: Contract, b: Located) -> Reason | None:
    """Return why a product packs its second operand, in memory at `b`; None if it reads it in place."""
    if x.rows > 1 or x.depth > 1:
        return _CONVOLUTION
    if not x.is_float:
        return _GROUPED
    if x.scale is not None:
        return _SCALED
    if is_constant(lowered, b):
        return CONSTANT
    if x.b.element != x.element or x.a.element != x.element:
        return _CONVERTED
    return _why_large(heuristics, x, b)


def _why_large(heuristics: Heuristics, x: Contract, b: Located) -> Reason | None:
    """Return why a matrix is packed that could be read in place at `b`; None if it is read in place."""
    rows, columns = x.shape[-2:]
    depth = x.b.shape[-2]
    if isinstance(rows, int) and rows <= heuristics.few_rows and 1 in b.strides[-2:]:
        return _EMPTY if columns == 0 or depth == 0 else None
    if not isinstance(rows, int):
        return _SYMBOLIC_ROWS
    if b.strides[-1] != 1:
        return _COLUMNS_APART
    if not isinstance(columns, int) or not isinstance(depth, int):
        return _SYMBOLIC
    if rows > heuristics.direct_rows:
        return Reason("{} rows > {}", (rows, heuristics.direct_rows))
    size = depth * columns * element_bytes(x.element)
    if size > heuristics.direct_bytes:
        return Reason("{} bytes > {}", (size, heuristics.direct_bytes))
    return None if size else _EMPTY


def direct_operand(
    builder: PlanBuilder, x: Contract, b: Place, batch: Sequence[Size], entry: Entry
) -> DirectOperand | None:
    """Return the second operand read in place, None if it is packed; `b` has strides along the batch axes."""
    if why_packed(builder.heuristics, builder.lowered, x, b.located) is not None:
        return None
    size, strides = element_bytes(b.element), b.strides[: len(batch)]
    matrix = zip(x.b.shape[-2:], b.located.strides[-2:], strict=True)
    axes = [*zip(batch, strides, strict=True), *matrix]
    entry.reaches.append(builder.reach(b.located, b.element, axes))
    transposed = b.located.strides[-1] != 1
    line = b.located.strides[-1 if transposed else -2] * size
    return DirectOperand(b, line, transposed, [stride * size for stride in strides])


def is_constant(lowered: Lowered, located: Located) -> bool:
    """Return whether an operand is the same in all runs."""
    base = located.base
    if not isinstance(base, Stored):
        return False
    return base.array is not None or base.slot in lowered.prepared.constants
