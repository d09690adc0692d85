"""The nodes of a graph as a tree of boxes: layers of their names, repeated blocks, parts of long lists.

A page shows the items of a few open boxes at a time, so that no box has many: what it lays out at once stays
small, whatever the size of the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, takewhile
from typing import TYPE_CHECKING, Literal, TypeAlias

from sabir.viewing._repeats import repeats
from sabir.viewing._texts import NAME, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

BoxKind: TypeAlias = Literal["graph", "layer", "repeat", "block", "part"]
MOST_ITEMS = 60  # of one box
_LEAST_PART = 9  # items of a part of a long list
_SPARED = 8  # nodes that a repeat must spare
_DEEPEST = 12  # layers in a name
_SLACK = 3  # a part of a long list may end this part of its length earlier or later


@dataclass(frozen=True, slots=True)
class Leaf:
    """One node as the tree sees it: its number, its layers, its kind, and the numbers of nodes that it reads.

    Nodes of one kind call the same operator with the same attributes. `op` is its name.
    """

    number: int
    layers: tuple[str, ...]
    kind: int
    reads: tuple[int, ...]
    op: str


@dataclass(slots=True)
class Box:
    """Some nodes of a graph, in boxes or alone; `repeat` has boxes of equal contents."""

    kind: BoxKind
    name: str
    items: list[Box | Leaf] = field(default_factory=list["Box | Leaf"])

    def leaves(self) -> Iterator[Leaf]:
        """Yield the nodes in this box and in those inside it."""
        for item in self.items:
            if isinstance(item, Leaf):
                yield item
            else:
                yield from item.leaves()


def tree_of(leaves: Iterable[Leaf], name: str) -> Box:
    """Return the tree of nodes that are in topological order.

    >>> box = tree_of([Leaf(n, ('block',), n % 3, (n - 1,), 'Relu') for n in range(30)], 'g')
    >>> [(item.kind, len(item.items)) for item in box.items[0].items]
    [('block', 3), ('block', 3), ('block', 3), ('block', 3), ('block', 3), ('block', 3), ('block', 3), \
('block', 3), ('block', 3), ('block', 3)]
    """
    root = Box("graph", name)
    placed = _with_constants_at_readers(list(leaves))
    open_boxes: dict[tuple[str, ...], Box] = {(): root}
    for leaf, layers in zip(placed, _layers(placed), strict=True):
        for depth in range(1, len(layers) + 1):
            if layers[:depth] not in open_boxes:
                box = open_boxes[layers[:depth]] = Box("layer", shortened(layers[depth - 1], NAME))
                open_boxes[layers[: depth - 1]].items.append(box)
        open_boxes[layers].items.append(leaf)
    items = _plain(root).items
    while len(items) == 1 and isinstance(items[0], Box):
        items = items[0].items
    root.items = _folded(items)
    return root


def _with_constants_at_readers(leaves: Sequence[Leaf]) -> list[Leaf]:
    """Return nodes in an order in which one that reads no other stands before the first that reads it.

    Exporters write many constants far from the nodes that read them.
    """
    read = {number for leaf in leaves for number in leaf.reads}
    waiting = {leaf.number: leaf for leaf in leaves if not leaf.reads and leaf.number in read}
    found: list[Leaf] = []
    for leaf in leaves:
        if leaf.number not in waiting and (leaf.reads or leaf.number not in read):
            found += [waiting.pop(number) for number in leaf.reads if number in waiting]
            found.append(leaf)
    return found


def _layers(leaves: Sequence[Leaf]) -> list[tuple[str, ...]]:
    """Return the layers of nodes; one without any is in those that surround it in the sequence.

    An exporter that gives nodes no names leaves those of the weights, which name the layers of few nodes.
    """
    before = list(accumulate((leaf.layers for leaf in leaves), _last))
    after = list(accumulate((leaf.layers for leaf in reversed(leaves)), _last))[::-1]
    found = [
        leaf.layers or _common(one, other) for leaf, one, other in zip(leaves, before, after, strict=True)
    ]
    return [layers[:_DEEPEST] for layers in found]


def _last(known: tuple[str, ...], layers: tuple[str, ...]) -> tuple[str, ...]:
    return layers or known


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple([part for part, _ in same])


def _plain(box: Box) -> Box:
    """Join boxes with what is alone inside them."""
    items: list[Box | Leaf] = []
    for item in box.items:
        inner = item if isinstance(item, Leaf) else _plain(item)
        items.append(inner.items[0] if isinstance(inner, Box) and _holds_a_leaf(inner) else inner)
    if len(items) == 1 and isinstance(items[0], Box) and box.kind == "layer":
        return Box("layer", shortened(f"{box.name}/{items[0].name}", NAME), items[0].items)
    return Box(box.kind, box.name, items)


def _holds_a_leaf(box: Box) -> bool:
    return len(box.items) == 1 and isinstance(box.items[0], Leaf)


def _folded(items: list[Box | Leaf]) -> list[Box | Leaf]:
    """Return the items of a box with repeats as boxes, and at most `MOST_ITEMS` of them."""
    found = _with_repeats(items)
    for item in found:
        if isinstance(item, Box) and item.kind == "layer":
            item.items = _folded(item.items)
    return _in_parts(found)


def _with_repeats(items: list[Box | Leaf]) -> list[Box | Leaf]:
    reads, kinds = _reads(items), _kinds(items)
    weights = [1 if isinstance(item, Leaf) else sum(1 for _ in item.leaves()) for item in items]
    found: list[Box | Leaf] = []
    place = 0
    for repeat in repeats(kinds, reads, weights, _SPARED):
        found += items[place : repeat.start]
        starts = range(repeat.start, repeat.stop, repeat.period)
        blocks = [_block(items[at : at + repeat.period], number) for number, at in enumerate(starts, 1)]
        names = [item.name if isinstance(item, Box) else item.op for item in blocks]
        box = Box("repeat", _span(names) if repeat.period == 1 else "equal blocks", blocks)
        box.items = _in_parts(box.items)
        found.append(box)
        place = repeat.stop
    return [*found, *items[place:]]


def _block(items: list[Box | Leaf], number: int) -> Box | Leaf:
    """Return one of several equal blocks; a single item is a block already."""
    if len(items) == 1:
        (item,) = items
        if isinstance(item, Box):
            item.items = _folded(item.items)
            item.kind = "block"
        return item
    return Box("block", f"block {number}", _folded(items))


def _kinds(items: Sequence[Box | Leaf]) -> list[int]:
    """Return a number for each item, equal for boxes whose nodes have equal kinds in the same order."""
    numbers: dict[object, int] = {}
    keys = [
        item.kind if isinstance(item, Leaf) else tuple([leaf.kind for leaf in item.leaves()])
        for item in items
    ]
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _reads(items: Sequence[Box | Leaf]) -> list[list[int]]:
    """Return the places of the items that each item reads."""
    inside = [[item] if isinstance(item, Leaf) else list(item.leaves()) for item in items]
    places = {leaf.number: place for place, leaves in enumerate(inside) for leaf in leaves}
    return [
        sorted({places[r] for leaf in leaves for r in leaf.reads if places.get(r, place) != place})
        for place, leaves in enumerate(inside)
    ]


def _in_parts(items: list[Box | Leaf]) -> list[Box | Leaf]:
    """Return at most `MOST_ITEMS` items: those of a longer list as boxes, cut where few values cross."""
    while len(items) > MOST_ITEMS:
        size = max(_LEAST_PART, min(MOST_ITEMS * 3 // 4, math.isqrt(len(items))))
        crossing = _crossing(items)
        cuts = [0]
        while len(items) - cuts[-1] > size + size // _SLACK:
            window = range(cuts[-1] + size - size // _SLACK, cuts[-1] + size + size // _SLACK + 1)
            cuts.append(min(window, key=lambda place: (crossing[place], place)))
        cuts.append(len(items))
        items = [_part(items[a:b]) for a, b in pairwise(cuts)]
    return items


def _part(items: list[Box | Leaf]) -> Box | Leaf:
    leaves = [
        leaf
        for item in (items[0], items[-1])
        for leaf in ([item] if isinstance(item, Leaf) else item.leaves())
    ]
    return Box("part", f"{leaves[0].op} … {leaves[-1].op}", items)


def _span(names: Sequence[str]) -> str:
    return names[0] if names[0] == names[-1] else shortened(f"{names[0]} … {names[-1]}", NAME)


def _crossing(items: Sequence[Box | Leaf]) -> list[int]:
    """Return, for each place of a list, how many items before it are read at it or after it."""
    last = {place: place for place in range(len(items))}
    for place, reads in enumerate(_reads(items)):
        for read in reads:
            last[read] = max(last[read], place)
    changes = [0] * (len(items) + 1)
    for place, reader in last.items():
        changes[place + 1] += 1
        changes[reader + 1] -= 1
    return list(accumulate(changes))
