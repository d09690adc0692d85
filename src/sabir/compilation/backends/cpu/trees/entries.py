"""The entries of decision trees."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.trees.kernel import LANES, Descent
from sabir.compilation.fusion.views import Copy, row_major
from sabir.compilation.plan.bounds import ComputedTensor
from sabir.compilation.plan.entries import BufferNumber, Computed, Entry, Offset
from sabir.compilation.plan.jobs import rows_of_trees
from sabir.loops import Descend, element_bytes

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.entries import Argument
    from sabir.loops import Expression

_STEP = 8  # operations


def group_trees(grouping: Grouping, x: Descend) -> None:
    """Let one kernel lead rows down trees; it reads them row by row."""
    a = grouping.in_memory(x.operand)
    if grouping.views.locate(a).strides != row_major(a.shape):
        a = Copy(a.element, a.shape, a)
        grouping.assign(a)
    needed = grouping.need(a)
    grouping.operands[x] = a, x.nodes
    group = grouping.start(x, x.shape, "trees")
    grouping.stored[x] = None
    grouping.depend(group, needed)


def add_trees(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of trees."""
    (x,) = group.members
    if not isinstance(x, Descend):
        raise TypeError("the group is one descent")
    operand, _ = builder.grouping.operands[x]
    located = builder.grouping.views.locate(operand)
    element, heuristics = x.nodes.element, builder.heuristics
    spec = Descent(element, x.weights.element, x.op, x.first is not None, x.bits)
    rows, features = operand.shape
    entry = Entry([], nodes=builder.origins.labels([x]))
    entry.scratch = (features * LANES + heuristics.tree_features) * element_bytes(element)
    entry.flops = rows * (_STEP * x.trees * x.steps)
    builder.works.append(ComputedTensor((rows,), 0, _STEP * x.trees * x.steps))
    job = partial(rows_of_trees, lanes=LANES, block=heuristics.tree_features, most=heuristics.tree_rows)
    block = Computed(job, (features, x.widest))
    arguments: list[Argument] = [rows, x.shape[1], x.trees, features, block, 4 * x.roots.shape[-1]]
    arguments += builder.pointer(located, operand.element, entry)
    for table in (x.nodes, x.roots, x.weights):
        arguments += _whole(builder, table)
    arguments += _whole(builder, x)
    for table in (x.first, x.targets):
        arguments += [0, 0] if table is None else _whole(builder, table)
    entry.choices.append((None, 0, spec, [*arguments, 2, 0, entry.scratch]))
    entry.reaches.append(builder.reach(located, operand.element, [(rows * features, 1)]))
    entry.writes, entry.axes = [builder.buffer(x)], 1
    entry.buffers.append(entry.writes[0])
    builder.entries.append(entry)


def _whole(builder: PlanBuilder, x: Expression) -> list[Argument]:
    """Return the arguments of a whole tensor.

    A run reads tables at few places: the entry does not count their bytes.
    """
    buffer = builder.buffer(x)
    buffer.use(len(builder.entries))
    return [BufferNumber(buffer), Offset(buffer, 0)]
