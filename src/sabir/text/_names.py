"""Names for values, made unique where they are missing or clash, without a change to the model."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.ir import Node
from sabir.text._words import spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Graph, Value


@dataclass(slots=True)
class _Level:
    """One graph that is being printed.

    `taken` are the names of its own values and of those it captures; `visible` are the names that graphs
    inside it may not use again. Names are kept as they are spelled.
    """

    graph: Graph | None
    taken: set[str] = field(default_factory=set[str])
    visible: set[str] = field(default_factory=set[str])


class Names:
    """The spelled names of values, given in the order in which they are asked for."""

    __slots__ = ("_captures", "_counts", "_given", "_levels", "_others", "_root")

    def __init__(self, root: Graph | Node) -> None:
        """Prepare to print a graph or a node, and all inside it."""
        self._root = root
        self._given: dict[Value, str] = {}
        self._counts: dict[str, Iterator[int]] = {}
        self._others: set[str] | None = None
        self._levels = [_Level(None)]
        self._captures: dict[Graph, set[Value]] = {}
        for graph in root.graphs if isinstance(root, Node) else [root]:
            self._capture(graph)

    def of(self, value: Value | None) -> str:
        """Return what stands for a value; empty quotes for an input or output that is left out."""
        if value is None:
            return '""'
        found = self._given.get(value)
        return self._give(value) if found is None else found

    def open(self, graph: Graph) -> None:
        """Begin a graph inside the one that is being printed."""
        captured = {self.of(value) for value in self._captures[graph]}
        self._levels.append(_Level(graph, captured))

    def close(self) -> None:
        """End the innermost graph."""
        self._levels.pop()

    def show(self, values: Iterable[Value | None]) -> None:
        """Let graphs inside this one see values, now that they are defined."""
        self._levels[-1].visible.update(self.of(v) for v in values if v is not None)

    def _give(self, value: Value) -> str:
        home = value.home
        place = next((i for i in range(len(self._levels) - 1, 0, -1) if self._levels[i].graph is home), 0)
        level, around = self._levels[place], self._levels[:place]
        name = spelled(value.name)
        if not value.name or name in level.taken or any(name in outer.visible for outer in around):
            name = self._fresh(value.name)
        level.taken.add(name)
        self._given[value] = name
        return name

    def _fresh(self, base: str) -> str:
        """Return a name that nothing else has: `v0`, or a numbered form of the old name."""
        if self._others is None:
            self._others = {spelled(v.name) for v in _values(self._root)}
        for number in self._counts.setdefault(base, itertools.count(1 if base else 0)):
            name = spelled(f"{base}_{number}" if base else f"v{number}")
            if name not in self._others:
                break
        else:
            raise AssertionError("counting never ends")
        self._others.add(name)
        return name

    def _capture(self, graph: Graph) -> set[Value]:
        """Note what a graph, and each graph inside it, reads from around it."""
        read = {v for v in graph.outputs if v is not None}
        for node in graph:
            read.update(v for v in node.inputs if v is not None)
            if node.attributes:
                read.update(*map(self._capture, node.graphs))
        captured = self._captures[graph] = {v for v in read if v.home is not graph}
        return captured


def _values(root: Graph | Node) -> Iterator[Value]:
    """Return every value that is read or defined, with repetitions."""
    nodes = [root] if isinstance(root, Node) else []
    graphs = list(root.graphs) if isinstance(root, Node) else [root]
    for graph in (inner for outer in graphs for inner in outer.scopes()):
        nodes += graph
        yield from (*graph.inputs, *graph.initializers, *graph.stale)
        yield from (v for v in graph.outputs if v is not None)
    for node in nodes:
        yield from (v for v in (*node.inputs, *node.outputs) if v is not None)
