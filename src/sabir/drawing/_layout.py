"""A layered layout (Sugiyama's): layers, few crossings, then a column for each box and each line."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from sabir.drawing._levels import levels_of
from sabir.drawing._ordering import order
from sabir.drawing._settling import Wish, settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.drawing._levels import Levels, Link
    from sabir.drawing._nets import Frame, Net, Spacing

_SWEEPS = 9  # odd: the last one goes down, so that a chain is straight below its source
_BEND = 8.0  # the weight of a bend among boxes: a long line is straight
_UNBOUND = 0.01  # the weight of an item without neighbours, which yields to all others
_FIXED = 1e6  # the weight of an item that stays


class Place(NamedTuple):
    """An item of a layer: a box or a bend of a net, of which the other is None; `x` is its middle.

    A box reaches from `left` to `left + width`, a bend has the width 0.
    """

    box: int | None
    net: int | None
    x: int
    left: int
    width: int


class Leg(NamedTuple):
    """The part of a net between two layers: from the column `top` to the columns `bottoms`."""

    net: int
    top: int
    bottoms: tuple[int, ...]


class Layout(NamedTuple):
    """The places in each layer, and the legs between each layer and the next; columns are 0 to `width`.

    `exits` has the column in which each net leaves its box.
    """

    layers: tuple[tuple[Place, ...], ...]
    legs: tuple[tuple[Leg, ...], ...]
    exits: tuple[int, ...]
    width: int


def laid_out(frames: Sequence[Frame], nets: Sequence[Net], spacing: Spacing) -> Layout:
    """Return the layout of frames in topological order; raises UnsupportedError for too many bends."""
    levels = levels_of(len(frames), nets)
    order(levels)
    columns = _Columns(levels, frames, nets, spacing)
    columns.settle()
    return columns.layout()


class _Columns:
    """The columns of items and of the pins where lines touch them."""

    def __init__(
        self, levels: Levels, frames: Sequence[Frame], nets: Sequence[Net], spacing: Spacing
    ) -> None:
        self._levels, self._nets, self._spacing = levels, nets, spacing
        count = levels.boxes + len(levels.nets)
        self._above: list[list[Link]] = [[] for _ in range(count)]
        self._below: list[list[Link]] = [[] for _ in range(count)]
        for links in levels.links:
            for link in links:
                self._above[link.lower].append(link)
                self._below[link.upper].append(link)
        self._exits = dict.fromkeys(range(len(nets)), 0)  # from the middle of the source
        self._entries: dict[tuple[int, int], int] = {}  # of a net at a box, from its middle
        self._left, self._right = [0] * count, [0] * count  # how far an item reaches from its middle
        self._reach = [0] * count  # to the right, with labels
        self._place_pins(frames)
        self._x = [0] * count
        for layer in levels.layers:
            for item, x in zip(layer, settle([Wish(0, 1)] * len(layer), self._distances(layer)), strict=True):
                self._x[item] = x

    def _place_pins(self, frames: Sequence[Frame]) -> None:
        places = {item: place for layer in self._levels.layers for place, item in enumerate(layer)}
        written: list[list[int]] = [[] for _ in frames]
        for number, net in enumerate(self._nets):
            written[net.source].append(number)
        for box, frame in enumerate(frames):
            below: dict[int, list[int]] = {}
            for link in self._below[box]:
                below.setdefault(link.net, []).append(places[link.lower])
            by_reader = sorted(written[box], key=lambda n: sum(below[n]) / len(below[n]))
            self._place_box(box, frame, by_reader)
        for box in range(len(frames)):
            entries = sorted(self._above[box], key=lambda link: (places[link.upper], self._exits[link.net]))
            for offset, link in zip(self._spread([self._spacing.pins] * len(entries)), entries, strict=True):
                self._entries[link.net, box] = offset

    def _place_box(self, box: int, frame: Frame, written: Sequence[int]) -> None:
        """Choose where values leave a box, and how wide it is."""
        spacing = self._spacing
        labels = [_labelled(frame.labels[self._nets[number].exit], spacing) for number in written]
        offsets = self._spread([max(spacing.pins, label + spacing.lines) for label in labels])
        self._exits.update(zip(written, offsets, strict=True))
        entries = max(0, len(self._above[box]) - 1) * spacing.pins
        pins = max(entries, offsets[-1] - offsets[0] if offsets else 0) + 2 * spacing.pins
        width = max(frame.width, pins)
        self._left[box] = width // 2
        self._right[box] = width - width // 2
        reach = (offset + label for offset, label in zip(offsets, labels, strict=True))
        self._reach[box] = max(self._right[box], *reach, 0)

    def _spread(self, pitches: Sequence[int]) -> list[int]:
        """Return offsets around 0, each with its pitch to the next."""
        offsets = list(accumulate(pitches[:-1], initial=0)) if pitches else []
        return [offset - offsets[-1] // 2 for offset in offsets]

    def _distances(self, layer: Sequence[int]) -> list[int]:
        boxes, spacing = self._levels.boxes, self._spacing
        return [
            self._reach[a] + self._left[b] + (spacing.boxes if a < boxes and b < boxes else spacing.lines)
            for a, b in pairwise(layer)
        ]

    def settle(self) -> None:
        """Move items to the columns of their neighbours, above and below in turn."""
        distances = [self._distances(layer) for layer in self._levels.layers]
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            wished = self._wish_below if downwards else self._wish_above
            layers = list(zip(self._levels.layers, distances, strict=True))
            for layer, distance in layers if downwards else reversed(layers):
                self._settle(layer, distance, map(wished, layer))
        for layer, distance in zip(self._levels.layers, distances, strict=True):
            self._settle(layer, distance, map(self._wish_of_free, layer))

    def _settle(self, layer: Sequence[int], distances: Sequence[int], wishes: Iterable[Wish]) -> None:
        for item, x in zip(layer, settle(list(wishes), distances), strict=True):
            self._x[item] = x

    def _is_free(self, item: int) -> bool:
        """Return whether an item follows its only reader, and not its reader it: a constant, an input."""
        return not self._above[item] and len(self._below[item]) == 1

    def _wish_below(self, item: int) -> Wish:
        """Return where an item wants to be for its neighbours above."""
        links = [link for link in self._above[item] if not self._is_free(link.upper)] or self._above[item]
        return self._wish(item, [self._exit(link) - self._entry_offset(link) for link in links])

    def _wish_above(self, item: int) -> Wish:
        """Return where an item wants to be for its neighbours below."""
        return self._wish(
            item,
            [
                self._x[link.lower] + self._entry_offset(link) - self._exit_offset(link)
                for link in self._below[item]
            ],
        )

    def _wish_of_free(self, item: int) -> Wish:
        """Return where an item wants to be once all but the free ones have their places."""
        return self._wish_above(item) if self._is_free(item) else Wish(self._x[item], _FIXED)

    def _wish(self, item: int, wanted: Sequence[int]) -> Wish:
        if not wanted:
            return Wish(self._x[item], _UNBOUND)
        return Wish(_middle(wanted), float(len(wanted)) if item < self._levels.boxes else _BEND)

    def _exit_offset(self, link: Link) -> int:
        return self._exits[link.net] if link.upper < self._levels.boxes else 0

    def _entry_offset(self, link: Link) -> int:
        return self._entries.get((link.net, link.lower), 0)

    def _exit(self, link: Link) -> int:
        return self._x[link.upper] + self._exit_offset(link)

    def layout(self) -> Layout:
        """Return the layout, moved so that the leftmost column is 0."""
        items = range(len(self._x))
        start = min((self._x[i] - self._left[i] for i in items), default=0)
        self._x = [x - start for x in self._x]
        return Layout(
            tuple(tuple(map(self._place, layer)) for layer in self._levels.layers),
            tuple(tuple(self._legs(links)) for links in self._levels.links),
            tuple(self._x[net.source] + self._exits[number] for number, net in enumerate(self._nets)),
            max((self._x[i] + self._reach[i] for i in items), default=0),
        )

    def _place(self, item: int) -> Place:
        is_box, x = item < self._levels.boxes, self._x[item]
        return Place(
            item if is_box else None,
            None if is_box else self._levels.nets[item],
            x,
            x - self._left[item],
            self._left[item] + self._right[item],
        )

    def _legs(self, links: Iterable[Link]) -> Iterable[Leg]:
        ends: dict[tuple[int, int], list[int]] = {}
        for link in links:
            ends.setdefault((link.net, self._exit(link)), []).append(
                self._x[link.lower] + self._entry_offset(link)
            )
        for (net, top), bottoms in ends.items():
            yield Leg(net, top, tuple(sorted(bottoms)))


def _labelled(label: int, spacing: Spacing) -> int:
    return label + spacing.label if label else 0


def _middle(positions: Sequence[int]) -> int:
    """Return the median; of an even number, what is nearest to the axis, 0, between the two middle ones.

    All that is between these makes the lines equally long. Without the axis, blocks with a line beside them
    would each be farther to the side than the one above.
    """
    found = sorted(positions)
    half = len(found) // 2
    low, high = found[(len(found) - 1) // 2], found[half]
    return min(max(0, low), high)


__all__ = ["Layout", "Leg", "Place", "laid_out"]
