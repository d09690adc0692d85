"""The entries of recurrences whose steps update matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.matrix_steps.kernel import SIZES, MatrixRecurrence
from sabir.compilation.backends.cpu.products.panels import lanes_of
from sabir.compilation.plan.bounds import ComputedTensor
from sabir.compilation.plan.entries import Entry, count_of, start_of
from sabir.compilation.plan.signature import scratch_memory
from sabir.loops import MatrixSteps, element_bytes

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.signature import Packable

_STEP = 8  # bytes that the limits of a run count for each step, in addition to the elements that it updates


def group_matrix_steps(grouping: Grouping, x: MatrixSteps) -> None:
    """Add the group of all steps, whose kernel reads its operands in place.

    Values and matrices are copied unless their columns have stride 1.
    """
    operands = [grouping.in_memory(o) for o in x.operands]
    for place in (2, 3):
        if grouping.views.locate(operands[place]).strides[-1] != 1:
            operands[place] = grouping.side_by_side(operands[place])
    needed = [g for o in operands for g in grouping.need(o)]
    grouping.more[x] = dict(zip(x.operands, operands, strict=True))
    group = grouping.start(x, x.shape, "matrix steps")
    grouping.stored[x] = None
    grouping.depend(group, needed)


def _spec(builder: PlanBuilder, x: MatrixSteps) -> MatrixRecurrence:
    columns, lanes = x.shape[-1], lanes_of(builder, x.element)
    most = builder.heuristics.matrix_step_vectors
    vectors = min(most, -(-columns // lanes)) if isinstance(columns, int) else most
    return MatrixRecurrence(x.element, lanes, max(1, vectors), x.decay is not None, x.rate is not None)


def add_matrix_steps(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of a group of matrix steps."""
    (x,) = group.members
    if not isinstance(x, MatrixSteps):
        raise TypeError("the group is one expression of such steps")
    operands = builder.grouping.more[x].values()
    _, _, steps, queries, keys = x.queries.shape
    size, updated = element_bytes(x.element), (*x.keys.shape, x.shape[-1])
    spec = _spec(builder, x)
    entry = Entry([], nodes=builder.origins.labels([x]))
    entry.scratch = keys * (spec.vectors * spec.lanes * size)
    entry.flops = count_of(updated) * (2 + 2 * queries + spec.decays + 2 * spec.corrects)
    builder.works += [ComputedTensor((steps,), 0, _STEP), ComputedTensor(updated, 0, size)]
    values: dict[str, Packable] = dict(zip(SIZES, (*x.queries.shape, x.shape[-1]), strict=True))
    target = builder.buffer(x)
    builder.use(target, entry)
    values |= {"result": start_of(target), "scratch": scratch_memory(entry.scratch)}
    for (name, count), operand in zip(spec.operands.items(), operands, strict=True):
        located = builder.grouping.views.locate(operand)
        strides = [stride * size for stride in located.strides[:count]]
        values[name] = {"tensor": builder.pointer(located, operand.element, entry), "strides": strides}
        extents = list(zip(operand.shape, located.strides, strict=True))
        entry.reaches.append(builder.reach(located, operand.element, extents))
    entry.choices.append((None, 0, spec, spec.signature.pack(values)))
    entry.writes, entry.loops = [target], spec.signature.span("batch")
    builder.entries.append(entry)
