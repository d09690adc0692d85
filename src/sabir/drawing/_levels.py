"""The items of each layer: boxes, and the bends where a long line passes a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import UnsupportedError
from sabir.drawing._layering import layers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.drawing._nets import Net

MOST_BENDS = 5_000


class Link(NamedTuple):
    """A piece of a net between an item and another one in the layer below, by number."""

    net: int
    upper: int
    lower: int


class Levels(NamedTuple):
    """A graph cut into layers; items below `boxes` are boxes, the others bends.

    `nets` has the net of each bend, `links` the pieces between each layer and the next one.
    """

    boxes: int
    layers: list[list[int]]
    links: list[list[Link]]
    nets: dict[int, int]


def levels_of(boxes: int, nets: Sequence[Net]) -> Levels:
    """Return the layers; all readers of a value share its bends. Raises UnsupportedError for too many."""
    places = layers_of(boxes, nets)
    count = max(places, default=-1) + 1
    found = Levels(boxes, [[] for _ in range(count)], [[] for _ in range(count - 1)], {})
    for box, layer in enumerate(places):
        found.layers[layer].append(box)
    bends = sum(max(0, max(map(places.__getitem__, n.readers)) - places[n.source] - 1) for n in nets)
    if bends > MOST_BENDS:
        raise UnsupportedError(
            f"a picture has at most {MOST_BENDS:,} bends of lines around boxes, and this one {bends:,}"
        )
    for number, net in enumerate(nets):
        _add(found, number, net, places)
    return found


def _add(levels: Levels, number: int, net: Net, places: Sequence[int]) -> None:
    """Add the pieces of a net, and its bends in the layers that it passes."""
    by_layer: dict[int, list[int]] = {}
    for reader in net.readers:
        by_layer.setdefault(places[reader], []).append(reader)
    last, upper = max(by_layer), net.source
    for layer in range(places[net.source] + 1, last + 1):
        links = levels.links[layer - 1]
        links += [Link(number, upper, reader) for reader in by_layer.get(layer, ())]
        if layer < last:
            bend = levels.boxes + len(levels.nets)
            levels.nets[bend] = number
            levels.layers[layer].append(bend)
            links.append(Link(number, upper, bend))
            upper = bend


__all__ = ["MOST_BENDS", "Levels", "Link", "levels_of"]
