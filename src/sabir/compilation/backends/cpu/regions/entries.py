"""The groups and entries of pooled regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.products.panels import lanes_of
from sabir.compilation.backends.cpu.regions.kernel import SIZES, Regions
from sabir.compilation.fusion.views import Copy, row_major
from sabir.compilation.plan.bounds import ComputedTensor
from sabir.compilation.plan.entries import Entry, count_of, start_of
from sabir.loops import PoolRegions

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Expression

_PLACE = 8  # operations for the range of a bin
_SAMPLE = 8  # operations of a sample; their number is known at run time only


def group_regions(grouping: Grouping, x: PoolRegions) -> None:
    """Add a group for pooled regions; operands (NHWC images and tables) are copied if not row-major."""
    operands = {o: _row_by_row(grouping, grouping.in_memory(o)) for o in x.operands}
    needed = [g for o in operands.values() for g in grouping.need(o)]
    grouping.more[x] = operands
    group = grouping.start(x, x.shape, "regions")
    grouping.stored[x] = None
    grouping.depend(group, needed)


def _row_by_row(grouping: Grouping, x: Expression) -> Expression:
    if grouping.views.locate(x).strides == row_major(x.shape):
        return x
    copy = Copy(x.element, x.shape, x)
    grouping.assign(copy)
    return copy


def add_regions(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of pooled regions."""
    (x,) = group.members
    if not isinstance(x, PoolRegions):
        raise TypeError("the group is one expression of regions")
    entry = Entry([], nodes=builder.origins.labels([x]))
    entry.flops = count_of(x.shape) * _SAMPLE
    builder.works.append(ComputedTensor((x.shape[0],), 0, _PLACE))
    target = builder.buffer(x)
    builder.use(target, entry)
    _, *image = x.images.shape
    spec = Regions(x.element, lanes_of(builder, x.element), x.op, x.places is not None)
    values: dict[str, Packable] = dict(zip(SIZES, (x.shape[0], *x.bins, *image), strict=True))
    tensors = [start_of(target)]
    for operand in builder.grouping.more[x].values():
        located = builder.grouping.views.locate(operand)
        tensors.append(builder.pointer(located, operand.element, entry))
        extents = list(zip(operand.shape, located.strides, strict=True))
        entry.reaches.append(builder.reach(located, operand.element, extents))
    values |= zip(spec.tensors, tensors, strict=True)
    entry.choices.append((None, 0, spec, spec.signature.pack(values)))
    builder.entries.append(entry)
