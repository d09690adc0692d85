"""The groups and entries of pooled regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.products.panels import lanes_of
from sabir.compilation.backends.cpu.regions.kernel import SIZES, Regions
from sabir.compilation.backends.cpu.whole_tensors import group_whole, whole_operands
from sabir.compilation.plan.bounds import ComputedTensor
from sabir.compilation.plan.entries import Entry, count_of, start_of
from sabir.loops import PoolRegions

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.signature import Packable

_PLACE = 8  # operations for the range of a bin
_SAMPLE = 8  # operations of a sample; their number is known at run time only


def group_regions(grouping: Grouping, x: PoolRegions) -> None:
    """Add a group for pooled regions; operands (NHWC images and tables) are copied if not row-major."""
    group_whole(grouping, x, "regions")


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
    tensors = [start_of(target), *whole_operands(builder, x, entry)]
    values |= zip(spec.tensors, tensors, strict=True)
    entry.choices.append((None, 0, spec, spec.signature.pack(values)))
    builder.entries.append(entry)
