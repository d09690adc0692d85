"""The entries of loop nests: the kernel of a group, with its arguments and scratch memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.axes import beside_one, fold_of, is_short, merged, nest_of
from sabir.compilation.backends.cpu.elementwise.nesting import Nesting, Place, nesting_of
from sabir.compilation.backends.cpu.elementwise.transposes import can_transpose
from sabir.compilation.backends.cpu.emit.nest import ANY, Nest, TakeStep, access_name, take_name
from sabir.compilation.backends.cpu.emit.row_passes import passes_of
from sabir.compilation.backends.cpu.reaches import reaches_of
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import Entry, count_of
from sabir.compilation.plan.signature import scratch_memory
from sabir.loops import Size, element_bytes

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.signature import Packable

_SYMBOLIC = Reason("their length is symbolic")
_WORD = 64  # bytes to which the parts of scratch memory are rounded


def add_nest(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of the loops of a group, if it stores anything."""
    nesting = nesting_of(group, builder.grouping)
    if nesting.stores:
        builder.entries.append(nest_entry(builder, group, nesting))


def nest_entry(builder: PlanBuilder, group: Group, nesting: Nesting) -> Entry:
    """Return the entry of the loops of a group."""
    nesting = beside_one(merged(nesting), builder.heuristics)
    nest = nest_of(nesting, builder.target.vector_bits, builder.heuristics)
    entry = Entry([], nodes=builder.origins.labels([*group.members, *group.inlined]))
    _decide(builder, nest, nesting, entry)
    scratch = scratch_of(nest, nesting)
    values = nest_values(builder, nest, nesting, entry, scratch)
    entry.choices.append((None, 0, nest, nest.signature.pack(values)))
    note_writes(builder, entry, nesting, nest.signature.span("sizes"))
    entry.scratch = scratch
    entry.flops = _operations(nest) * count_of(nesting.sizes)
    return entry


def _decide(builder: PlanBuilder, nest: Nest, nesting: Nesting, entry: Entry) -> None:
    """Record the decision about the vectorized axis."""
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


def nest_values(
    builder: PlanBuilder, nest: Nest, nesting: Nesting, entry: Entry, scratch: Size, own: Place | None = None
) -> dict[str, Packable]:
    """Return the arguments of a nest by name; add its reaches to an entry without choices.

    `own` is the place of the last access, whose address the kernel computes; None if there is no such place.
    """
    entry.reaches += [] if entry.choices else reaches_of(nesting, builder.buffer)
    found: dict[str, Packable] = {"sizes": nesting.sizes, "extents": nesting.arguments}
    places = nesting.places if own is None else [*nesting.places, own]
    for number, (place, access) in enumerate(zip(places, nest.accesses, strict=True)):
        tensor = None if place is own else builder.pointer(place.located, place.element, entry)
        size = element_bytes(place.element)
        strides = [
            stride * size for stride, kind in zip(place.strides, access.strides, strict=True) if kind == ANY
        ]
        found[access_name(number)] = {"tensor": tensor, "strides": strides}
    takes = [number for number, step in enumerate(nest.steps) if isinstance(step, TakeStep)]
    for number, (size, stride) in zip(takes, nesting.takes, strict=True):
        found[take_name(number)] = {"size": size, "stride": stride}
    found["scratch"] = scratch_memory(scratch)
    return found


def note_writes(builder: PlanBuilder, entry: Entry, nesting: Nesting, loops: tuple[int, int]) -> None:
    """Set the buffers that an entry writes, and the words of its block with the sizes of its nest."""
    if not nesting.takes:  # a nest with takes runs even if its result is empty: it reports invalid indices
        entry.loops = loops
        entry.writes = [builder.buffer(nesting.places[n].located.base) for n, _ in nesting.stores]


def scratch_of(nest: Nest, nesting: Nesting) -> Size:
    """Return the bytes of a thread for the values of a row that later passes read."""
    if not any(nest.reduced) or not nest.reduced[nest.inner]:
        return 0
    length = count_of([n for n, reduced in zip(nesting.sizes, nest.reduced, strict=True) if reduced])
    found: Size = 0
    for number in passes_of(nest, keep=True).kept:
        found += length * element_bytes(nest.steps[number].element) + 2 * _WORD
    return found


def _operations(nest: Nest) -> int:
    return sum(type(step).__name__ in {"Apply", "Fold"} for step in nest.steps)
