"""The groups and entries of sliding windows: pooling, and depthwise and grouped convolutions."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.axes import merged, nest_of
from sabir.compilation.backends.cpu.elementwise.entries import nest_values, note_writes
from sabir.compilation.backends.cpu.elementwise.nesting import Place, nesting_of
from sabir.compilation.backends.cpu.emit.terms import GROUPS
from sabir.compilation.backends.cpu.passes import packed_zero
from sabir.compilation.backends.cpu.products.formats import dot_of, pairs_of
from sabir.compilation.backends.cpu.products.panels import Panels, lanes_of, packed_panels
from sabir.compilation.backends.cpu.windows.kernel import Sliding
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import Entry, count_of, start_of
from sabir.loops import FLOATS, Slide, element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.elementwise.nesting import Nesting
    from sabir.compilation.backends.cpu.emit.nest import Nest
    from sabir.compilation.backends.cpu.emit.terms import Dot
    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Expression, Size


def add_windows(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of sliding windows and their epilogue."""
    builder.entries.append(windows_entry(builder, group, windows_nesting(builder, group)))


def group_windows(grouping: Grouping, x: Slide) -> None:
    """Add a group for sliding windows; its operands are in memory."""
    operand, *weights = read = [*map(grouping.in_memory, x.operands)]
    grouping.operands[x] = operand, weights[0] if weights else operand
    grouping.depend(grouping.start(x, x.shape, "windows"), [g for o in read for g in grouping.need(o)])


def slide_of(x: Expression) -> Slide:
    """Return the first member of a group as a Slide; raises TypeError if it is none."""
    if not isinstance(x, Slide):
        raise TypeError("the group begins with windows")
    return x


def windows_nesting(builder: PlanBuilder, group: Group) -> Nesting:
    """Return the loops over windows with their epilogue; the last place is the operand."""
    slide = slide_of(group.members[0])
    located = builder.grouping.views.locate(builder.grouping.operands[slide][0])
    nesting = nesting_of(group, builder.grouping)
    nesting.places.append(Place(located, slide.operand.element, located.strides[: slide.rank]))
    return nesting


def windows_entry(builder: PlanBuilder, group: Group, nesting: Nesting) -> Entry:
    """Return the entry of sliding windows with the loops `nesting`."""
    slide = slide_of(group.members[0])
    windows, element, located = slide.rank, slide.operand.element, nesting.places[-1].located
    sizes = (*nesting.sizes[: windows - 1], *slide.operand.shape[windows - 1 :])
    nesting = merged(nesting, fixed=1)
    nest = _nest(builder, nesting, slide)
    entry = Entry([], nodes=builder.origins.labels([*group.members, *group.inlined]))
    panels = None if slide.weights is None else _panels(builder, slide, nest.lanes)
    entry.reaches.append(builder.reach(located, element, list(zip(sizes, located.strides, strict=True))))
    values = {
        "nest": nest_values(builder, nest, nesting, entry, 0),
        "tap_strides": [stride * element_bytes(element) for stride in located.strides[windows:]],
        **({} if panels is None else _weight_values(builder, slide, panels, entry)),
    }
    taps = tuple(n for n in sizes[windows:] if isinstance(n, int))
    sliding = Sliding(nest, slide.element, slide.op, taps, panels is not None, 1, slide.mixed)
    sliding = replace(sliding, whole=_is_whole(nesting.sizes[nest.inner], nest.lanes))
    step = _step(nesting.places[-1].strides, nest.inner, located.strides[-1], builder.heuristics)
    if slide.mixed == 1 and step < taps[-1]:  # else neighbouring windows share no elements
        sliding = replace(sliding, step=step)
    if panels is not None and panels.group > 1:
        sliding = replace(sliding, dot=_dot(builder, slide), step=step)
    sliding = _at_a_time(builder, sliding, nesting, panels, entry)
    entry.choices.append((None, 0, sliding, sliding.signature.pack(values)))
    note_writes(builder, entry, nesting, sliding.signature.span("nest", "sizes"))
    entry.flops = count_of(nesting.sizes) * (prod(taps) * (1 if panels is None else 2 * slide.mixed))
    return entry


def _at_a_time(
    builder: PlanBuilder, sliding: Sliding, nesting: Nesting, panels: Panels | None, entry: Entry
) -> Sliding:
    """Return the kernel with the number of windows along the last outer axis that it computes at a time."""
    heuristics, taps = builder.heuristics, sliding.taps
    outer = [n for axis, n in enumerate(nesting.sizes) if axis != sliding.nest.inner]
    wanted = places = _places(outer, heuristics)
    products = 0
    if panels is not None and panels.group > 1:
        products = -(-prod(taps[:-1]) // panels.group) * taps[-1]
        places = min(places, max(1, heuristics.window_products // products))
    chosen = Reason("{} windows at a time", (places,))
    if places == wanted:
        builder.decisions.add(entry.nodes, "windows", chosen)
    else:
        because = Reason("{} products in the code > {}", (products * wanted, heuristics.window_products))
        builder.decisions.add(entry.nodes, "windows", chosen, str(wanted), because)
    return replace(sliding, places=places)


def _nest(builder: PlanBuilder, nesting: Nesting, slide: Slide) -> Nest:
    """Return the nest, vectorized along the channels; if there is one channel, along the best axis."""
    last = len(nesting.sizes) - 1
    if slide.weights is not None:
        nest = nest_of(nesting, builder.target.vector_bits, builder.heuristics, inner=last)
        return replace(nest, lanes=lanes_of(builder, slide.element))
    inner = None if nesting.sizes[-1] == 1 else last
    return nest_of(nesting, builder.target.vector_bits, builder.heuristics, inner=inner)


def _weights(builder: PlanBuilder, slide: Slide) -> Expression:
    """Return the weights in memory."""
    return builder.grouping.operands[slide][1]


def _panels(builder: PlanBuilder, slide: Slide, lanes: int) -> Panels:
    """Return the packed layout of the weights `[channels, channels of a group, taps...]`: vector panels."""
    x = _weights(builder, slide)
    strides = builder.grouping.views.locate(x).strides
    channels, *taps = zip(x.shape, strides, strict=True)
    dot = _dot(builder, slide)
    if dot is None:
        return Panels(slide.element, [], taps, channels, lanes, source=x.element)
    *rows, last = taps if len(taps) > 1 else [*taps, (1, 0)]
    return Panels(x.element, [], [last, *rows], channels, lanes, GROUPS[dot], len(rows))


def _dot(builder: PlanBuilder, slide: Slide) -> Dot | None:
    """Return the dot product instruction for integers; weights minus a zero point need 16 bits."""
    if slide.element in FLOATS:
        return None
    return dot_of(builder.target) if packed_zero(slide) == 0 else pairs_of(builder.target)


def _weight_values(builder: PlanBuilder, slide: Slide, panels: Panels, entry: Entry) -> dict[str, Packable]:
    """Return the arguments for the weights: their address, for integers the panel bytes and zero points."""
    located = builder.grouping.views.locate(_weights(builder, slide))
    weights = packed_panels(builder, slide, located, panels)
    builder.use(weights, entry)
    found: dict[str, Packable] = {"weights": start_of(weights)}
    if panels.group > 1:
        found |= {"panel_bytes": panels.panel, "zero": slide.zero, "weights_zero": packed_zero(slide)}
    return found


def _is_whole(length: Size, lanes: int) -> bool:
    """Return whether the length is known to be a multiple of the lanes."""
    return isinstance(length, int) and length % lanes == 0


def _step(strides: Sequence[Size], inner: int, tap: Size, heuristics: Heuristics) -> int:
    """Return the distance of neighbouring windows in elements of a window's last axis, 0 if unknown."""
    across = [stride for axis, stride in enumerate(strides) if axis != inner]
    if not across:
        return 0
    steps = range(1, heuristics.shared_window_steps + 1)
    return next((n for n in steps if across[-1] == tap * n), 0)


def _places(outer: list[Size], heuristics: Heuristics) -> int:
    """Return how many windows along the last outer axis are computed at a time.

    Among the numbers with about the least cost, it is the best one for the smaller images of later layers, so
    that these can share the kernel.
    """
    if not outer:
        return 1
    count = outer[-1]
    if not isinstance(count, int):
        return heuristics.usual_window_places
    every, later = range(1, heuristics.window_places + 1), max(1, count // heuristics.later_windows)
    costs = {n: _cost(count, n, heuristics) for n in every}
    most = heuristics.near_window_cost * min(costs.values())
    near = [n for n, cost in costs.items() if cost <= most]
    return min(near, key=lambda n: (_cost(later, n, heuristics), n))


def _cost(count: int, places: int, heuristics: Heuristics) -> float:
    """Return the relative cost of `count` windows if `places` windows are computed at a time."""
    whole, rest = divmod(count, places)
    alone = heuristics.lone_window
    return whole * (1 + places / alone) + rest * (1 + 1 / alone)
