"""The entries of loop nests: maps, folds and moves of one group, with their arguments and scratch memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.axes import beside_one, fold_of, is_short, merged, nest_of
from sabir.compilation.backends.cpu.elementwise.nesting import Nesting, Place, nesting_of
from sabir.compilation.backends.cpu.elementwise.transposes import can_transpose
from sabir.compilation.backends.cpu.emit.nest import ANY, Nest
from sabir.compilation.backends.cpu.emit.row_passes import passes_of
from sabir.compilation.backends.cpu.reaches import reaches_of
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import Argument, Entry, count_of
from sabir.loops import Size, element_bytes

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.groups import Group

_SYMBOLIC = Reason("their length is symbolic")
_WORD = 64  # bytes to which parts of scratch memory are rounded


def add_nest(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of the loops of a group, if it stores anything."""
    nesting = nesting_of(group, builder.grouping)
    if nesting.stores:
        builder.entries.append(nest_entry(builder, group, nesting))


def nest_entry(builder: PlanBuilder, group: Group, nesting: Nesting) -> Entry:
    """Return the entry of the loops of a group."""
    nesting = beside_one(merged(nesting), builder.heuristics)
    nest = nest_of(nesting, builder.host.vector_bits, builder.heuristics)
    entry = Entry([], nodes=builder.origins.labels([*group.members, *group.inlined]))
    _decide(builder, nest, nesting, entry)
    scratch = scratch_of(nest, nesting)
    arguments = nest_arguments(builder, nest, nesting, entry, scratch)
    entry.choices.append((None, 0, nest, arguments))
    note_writes(builder, entry, nesting)
    entry.scratch = scratch
    entry.flops = _operations(nest) * count_of(nesting.sizes)
    return entry


def _decide(builder: PlanBuilder, nest: Nest, nesting: Nesting, entry: Entry) -> None:
    """Record along which axis vectors are."""
    add, axis = builder.decisions.add, Reason("vectors along axis {} of {}", (nest.inner, nest.axes))
    count, short = fold_of(nesting, builder.heuristics)
    if count is None:
        if can_transpose(nest):
            add(entry.nodes, "vectors", "tiles transposed in registers")
        elif nest.repeats:
            add(entry.nodes, "vectors", axis, because="each element is stored several times side by side")
        elif nest.axes > 1:
            add(entry.nodes, "vectors", axis)
    elif nest.reduced[nest.inner]:
        longer = _SYMBOLIC if not isinstance(count, int) else Reason("{} elements > {}", (count, short))
        add(entry.nodes, "vectors", "vectors along the folds", because=longer)
    elif is_short(nesting, builder.heuristics):
        because = Reason("{} elements <= {}", (count, short))
        add(entry.nodes, "vectors", "vectors across the folds", "along them", because)
    else:
        add(
            entry.nodes,
            "vectors",
            "vectors across the folds",
            because="more of what they read is side by side",
        )


def nest_arguments(
    builder: PlanBuilder, nest: Nest, nesting: Nesting, entry: Entry, scratch: Size, own: Place | None = None
) -> list[Argument]:
    """Return the arguments of a nest; with `own`, the kernel places the last access."""
    entry.reaches += [] if entry.choices else reaches_of(nesting, builder.buffer)
    found: list[Argument] = [*nesting.sizes]
    places = nesting.places if own is None else [*nesting.places, own]
    for place, access in zip(places, nest.accesses, strict=True):
        if place is own:
            found += [0, 0]
            continue
        found += builder.pointer(place.located, place.element, entry)
        size = element_bytes(place.element)
        found += [
            stride * size for stride, kind in zip(place.strides, access.strides, strict=True) if kind == ANY
        ]
    for pair in nesting.takes:
        found += pair
    found += nesting.arguments
    return [*found, 2, 0, scratch]


def note_writes(builder: PlanBuilder, entry: Entry, nesting: Nesting) -> None:
    """Note what an entry writes, whose first arguments are the sizes of one nest."""
    if not nesting.takes:  # an index out of range counts for an empty result too
        entry.axes = len(nesting.sizes)
        entry.writes = [builder.buffer(nesting.places[n].located.base) for n, _ in nesting.stores]


def scratch_of(nest: Nest, nesting: Nesting) -> Size:
    """Return how many bytes each thread needs for what a row keeps."""
    if not any(nest.reduced) or not nest.reduced[nest.inner]:
        return 0
    length = count_of([n for n, reduced in zip(nesting.sizes, nest.reduced, strict=True) if reduced])
    found: Size = 0
    for number in passes_of(nest, keep=True).kept:
        found += length * element_bytes(nest.steps[number].element) + 2 * _WORD
    return found


def _operations(nest: Nest) -> int:
    return sum(type(step).__name__ in {"Apply", "Fold"} for step in nest.steps)
