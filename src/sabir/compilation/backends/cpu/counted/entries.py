"""The groups and entries of kernels that decide how many results there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.counted.distinction import PLACE, Distinction
from sabir.compilation.backends.cpu.counted.places import Places
from sabir.compilation.backends.cpu.counted.suppression import SIZES, Suppression, scratch_bytes
from sabir.compilation.backends.cpu.emit.sort_keys import record_bytes
from sabir.compilation.backends.cpu.whole_tensors import group_whole, whole_operands
from sabir.compilation.plan.bounds import ComputedTensor
from sabir.compilation.plan.entries import Entry, count_of, start_of
from sabir.compilation.plan.signature import scratch_memory
from sabir.loops import Distinct, Suppress, TruePlaces

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Expression

_SORTED = 64  # operations, about, of an element that is sorted
_COMPARED = 16  # operations, about, of a box: its score is sorted, and it is compared with the selected boxes


def group_counted(grouping: Grouping, x: Distinct | Suppress | TruePlaces) -> None:
    """Add a group for such an expression."""
    group_whole(grouping, x, "counted")


def add_counted(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of such an expression, which one thread computes."""
    (x,) = group.members
    entry = Entry([], nodes=builder.origins.labels([x]), alone=True)
    target = builder.buffer(x)
    builder.use(target, entry)
    tensors = [start_of(target), *whole_operands(builder, x, entry)]
    spec, values = _kernel(builder, x, entry)
    values |= zip(spec.tensors, tensors, strict=True)
    entry.choices.append((None, 0, spec, spec.signature.pack(values)))
    builder.entries.append(entry)


def _kernel(
    builder: PlanBuilder, x: Expression, entry: Entry
) -> tuple[Distinction | Places | Suppression, dict[str, Packable]]:
    """Return the kernel of an expression, and its arguments without the tensors; set what the entry needs."""
    match x:
        case TruePlaces():
            (entry.flops,) = x.operand.shape
            return Places(), {"count": entry.flops}
        case Distinct():
            return _distinction(builder, x, entry)
        case Suppress():
            return _suppression(builder, x, entry)
        case _:
            raise TypeError(f"{type(x).__name__} is no expression of this family")


def _distinction(builder: PlanBuilder, x: Distinct, entry: Entry) -> tuple[Distinction, dict[str, Packable]]:
    (count,) = x.operand.shape
    entry.flops = count * _SORTED
    entry.scratch = count * (record_bytes(x.operand.element) + PLACE)
    builder.works.append(ComputedTensor((count,), 0, _SORTED))
    values: dict[str, Packable] = {"count": count, "scratch": scratch_memory(entry.scratch)}
    return Distinction(x.operand.element, x.ascending), values


def _suppression(builder: PlanBuilder, x: Suppress, entry: Entry) -> tuple[Suppression, dict[str, Packable]]:
    sizes = (*x.scores.shape, x.bound)
    lanes = builder.target.vector_bits // 32
    entry.flops = count_of(x.scores.shape) * _COMPARED
    entry.scratch = scratch_bytes(x.scores.shape[-1], x.bound, lanes)
    builder.works.append(ComputedTensor(x.scores.shape, 0, _COMPARED))
    values: dict[str, Packable] = dict(zip(SIZES, sizes, strict=True))
    values["scratch"] = scratch_memory(entry.scratch)
    return Suppression(lanes, x.centred, x.threshold is not None), values
