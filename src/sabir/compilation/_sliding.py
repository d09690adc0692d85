"""The entries of windows that are combined one by one: poolings, and convolutions of each channel alone."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from sabir.compilation._nesting import Place, merged, nest_of, nesting_of
from sabir.compilation._panels import Panels, lanes_of, packed_panels
from sabir.compilation._plan import BufferNumber, Entry, Offset, count_of
from sabir.compilation.kernels import Sliding, element_bytes
from sabir.loops import Slide

if TYPE_CHECKING:
    from sabir.compilation._building import PlanBuilder
    from sabir.compilation._groups import Group
    from sabir.compilation._nesting import Nesting
    from sabir.compilation._plan import Buffer
    from sabir.compilation.kernels import Nest
    from sabir.loops import Size

_MOST_PLACES = 8  # windows at a time: so many vectors and the weights fit into 16 registers
_USUAL_PLACES = 4  # where their number is symbolic
_ALONE = 3  # about so many windows of a group cost as much as one that is computed alone


def add_windows(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of combined windows and of the maps behind them."""
    slide = group.members[0]
    if not isinstance(slide, Slide):
        raise TypeError("the group begins with windows")
    located = builder.grouping.views.locate(builder.grouping.operands[slide][0])
    nesting = nesting_of(group, builder.grouping)
    windows = slide.rank
    nesting.places.append(Place(located, slide.element, located.strides[:windows]))
    nesting = merged(nesting, fixed=1)
    nest = _nest(builder, nesting, slide)
    entry = Entry([], nodes=builder.origins.labels([*group.members, *group.inlined]))
    weights = None if slide.weights is None else _weights(builder, slide, nest.lanes)
    sizes = slide.operand.shape
    entry.reaches.append(
        builder.reach(located, slide.element, list(zip(sizes, located.strides, strict=True)))
    )
    arguments = builder.arguments(nest, nesting, entry, 0)
    size = element_bytes(slide.element)
    arguments += [stride * size for stride in located.strides[windows:]]
    if weights is not None:
        builder.use(weights, entry)
        arguments += [BufferNumber(weights), Offset(weights, 0)]
    taps = tuple(n for n in sizes[windows:] if isinstance(n, int))
    outer = [n for axis, n in enumerate(nesting.sizes) if axis != nest.inner]
    sliding = Sliding(nest, slide.element, slide.op, taps, weights is not None, _places(outer))
    entry.choices.append((None, 0, sliding, arguments))
    builder.note_writes(entry, nesting)
    entry.flops = count_of(nesting.sizes) * (prod(taps) * (1 if weights is None else 2))
    builder.entries.append(entry)


def _nest(builder: PlanBuilder, nesting: Nesting, slide: Slide) -> Nest:
    """Return the nest, with vectors along the channels; along the best axis where there is one channel."""
    last = len(nesting.sizes) - 1
    if slide.weights is not None:
        nest = nest_of(nesting, builder.host.vector_bits, inner=last)
        return replace(nest, lanes=lanes_of(builder, slide.element))
    return nest_of(nesting, builder.host.vector_bits, inner=None if nesting.sizes[-1] == 1 else last)


def _weights(builder: PlanBuilder, slide: Slide, lanes: int) -> Buffer:
    """Return the weights (channels, taps...) in panels as wide as a vector."""
    x = slide.weights
    if x is None:
        raise TypeError("there are no weights")
    located = builder.grouping.views.locate(builder.grouping.operands[slide][1])
    channels, *taps = zip(x.shape, located.strides, strict=True)
    return packed_panels(builder, slide, located, Panels(slide.element, [], taps, channels, lanes))


def _places(outer: list[Size]) -> int:
    """Return how many windows along the last outer axis are computed at a time."""
    if not outer:
        return 1
    count = outer[-1]
    if not isinstance(count, int):
        return _USUAL_PLACES
    return min(
        range(1, _MOST_PLACES + 1),
        key=lambda n: ((count // n) * (1 + n / _ALONE) + (count % n) * (1 + 1 / _ALONE), n),
    )
