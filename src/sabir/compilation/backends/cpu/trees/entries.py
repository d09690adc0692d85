"""The groups and entries of decision trees."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.jobs import rows_of_trees
from sabir.compilation.backends.cpu.trees.kernel import LANES, Descent
from sabir.compilation.fusion.views import Copy, row_major
from sabir.compilation.plan.bounds import ComputedTensor
from sabir.compilation.plan.entries import Computed, Entry, start_of
from sabir.compilation.plan.signature import scratch_memory
from sabir.loops import Descend, element_bytes

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.entries import Argument
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Expression

_STEP = 8  # operations of a row at one node of a tree


def group_trees(grouping: Grouping, x: Descend) -> None:
    """Add a group for decision trees; the features are copied if they are not row-major."""
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
    """Add the entry of decision trees."""
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
    values: dict[str, Packable] = {
        "rows": rows, "targets": x.shape[1], "trees": x.trees, "features": features,
        "job_rows": Computed(job, (features, x.widest)), "step_bytes": 4 * x.roots.shape[-1],
        "x": builder.pointer(located, operand.element, entry), "scratch": scratch_memory(entry.scratch),
    }  # fmt: skip
    tensors = {
        "nodes": x.nodes, "roots": x.roots, "weights": x.weights, "scores": x, "first": x.first,
        "voted": x.targets,
    }  # fmt: skip
    values |= {name: None if table is None else _whole(builder, table) for name, table in tensors.items()}
    entry.choices.append((None, 0, spec, spec.signature.pack(values)))
    entry.reaches.append(builder.reach(located, operand.element, [(rows * features, 1)]))
    entry.writes, entry.loops = [builder.buffer(x)], spec.signature.span("rows")
    entry.buffers.append(entry.writes[0])
    builder.entries.append(entry)


def _whole(builder: PlanBuilder, x: Expression) -> list[Argument]:
    """Return the address arguments of a whole tensor.

    A run reads few elements of the tables, so their bytes do not count as traffic of the entry.
    """
    buffer = builder.buffer(x)
    buffer.use(len(builder.entries))
    return start_of(buffer)
