"""The grouping of products: each begins a group, and its operands are read in place or copied first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.heuristics import heuristics_of
from sabir.compilation.backends.cpu.products.direct import why_copied
from sabir.compilation.backends.cpu.products.formats import parameters_of
from sabir.compilation.fusion.inlining import is_inline

if TYPE_CHECKING:
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.loops import Contract


def group_product(grouping: Grouping, x: Contract) -> None:
    """Begin the group of a product, which depends on the groups that write its operands."""
    place_operands(grouping, x)
    operands = (*grouping.operands[x], *grouping.more[x].values())
    needed = [g for o in operands for g in grouping.need(o)]
    grouping.depend(grouping.start(x, x.shape, "product"), needed)


def place_operands(grouping: Grouping, x: Contract) -> None:
    """Choose the tensors in memory that a product reads, once: its operands, or a copy of the first one."""
    if x in grouping.operands:
        return
    a, b = grouping.in_memory(x.a), grouping.in_memory(x.b)
    if is_inline(a, grouping.heuristics) and a not in grouping.of:
        grouping.assign(a)
    at, located = map(grouping.views.locate, (a, b))
    copied = why_copied(heuristics_of(grouping), grouping.lowered, x, a, at, located)
    if copied is not None:
        grouping.decisions.add(
            (x,), "first operand", "first operand copied row by row", "read in place", copied
        )
        a = grouping.side_by_side(a)
    grouping.operands[x] = a, b
    grouping.more[x] = {o: grouping.in_memory(o) for o in parameters_of(x)}
