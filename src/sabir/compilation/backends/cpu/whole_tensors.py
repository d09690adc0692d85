"""Kernels that read whole tensors in row-major order, and compute one expression without fusion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.fusion.views import Copy, row_major

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import GroupKind
    from sabir.compilation.plan.entries import Argument, Entry
    from sabir.loops import Expression


def group_whole(grouping: Grouping, x: Expression, kind: GroupKind) -> None:
    """Add a group for an expression; operands are copied if they are not row-major in memory."""
    operands = {o: _row_by_row(grouping, grouping.in_memory(o)) for o in x.operands}
    needed = [g for o in operands.values() for g in grouping.need(o)]
    grouping.more[x] = operands
    group = grouping.start(x, x.shape, kind)
    grouping.stored[x] = None
    grouping.depend(group, needed)


def _row_by_row(grouping: Grouping, x: Expression) -> Expression:
    if grouping.views.locate(x).strides == row_major(x.shape):
        return x
    copy = Copy(x.element, x.shape, x)
    grouping.assign(copy)
    return copy


def whole_operands(builder: PlanBuilder, x: Expression, entry: Entry) -> list[list[Argument]]:
    """Return the address arguments of the operands of an expression, which `entry` reads as a whole."""
    found: list[list[Argument]] = []
    for operand in builder.grouping.more[x].values():
        located = builder.grouping.views.locate(operand)
        found.append(builder.pointer(located, operand.element, entry))
        extents = list(zip(operand.shape, located.strides, strict=True))
        entry.reaches.append(builder.reach(located, operand.element, extents))
    return found
