"""The names under which values are written: their own, made unique where they are missing or clash."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sabir.base import check_depth

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir._graph import Graph, Value


class Labels:
    """Names for every value of some graphs and of the graphs inside them, without a change to the model.

    A value keeps its name unless another of its graph has it, or a graph inside reads an outer value, or one
    that nothing defines, that the name would hide.
    """

    __slots__ = ("_captures", "_counts", "_every", "_names")

    def __init__(self, *graphs: Graph, around: Iterable[Value | None] = ()) -> None:
        """Name the values of graphs, and first those `around` them, which belong to no graph."""
        self._names: dict[Value, str] = {}
        self._every: set[str] = set()
        self._counts: dict[str, Iterator[int]] = {}
        self._captures: dict[Graph, set[Value]] = {}
        outer = [v for v in dict.fromkeys(around) if v is not None]
        self._every.update(v.name for v in outer)
        for graph in graphs:
            self._survey(graph, 1)
        self._give(outer, set())
        for graph in graphs:
            self._graph(graph)

    def __call__(self, value: Value) -> str:
        """Return the name of a value; one from elsewhere keeps its own."""
        return self._names.get(value, value.name)

    def add(self, graph: Graph) -> None:
        """Name the values of another graph that sees those named so far; raises LimitError as at first."""
        self._survey(graph, 1)
        self._graph(graph)

    def _survey(self, graph: Graph, depth: int) -> set[Value]:
        """Note the names in a graph, and what it and each graph inside it reads from around it."""
        check_depth(depth)
        read = {v for v in graph.outputs if v is not None}
        for node in graph:
            read.update([v for v in node.inputs if v is not None])
            if node.attributes:
                for inner in node.graphs:
                    read |= self._survey(inner, depth + 1)
        self._every.update(v.name for v in graph.defined())
        captured = self._captures[graph] = {v for v in read if v.home is not graph}
        self._every.update(v.name for v in captured)
        return captured

    def _graph(self, graph: Graph) -> None:
        self._give(graph.defined(), {self(v) for v in self._captures.pop(graph)})
        for node in graph:
            if node.attributes:
                for inner in node.graphs:
                    self._graph(inner)

    def _give(self, values: Iterable[Value], hidden: set[str]) -> None:
        taken = hidden
        for value in values:
            name = value.name
            if not name or name in taken:
                name = self._fresh(name)
            taken.add(name)
            self._names[value] = name

    def _fresh(self, stem: str) -> str:
        """Return a name that nothing else has: a numbered form of the old one."""
        for number in self._counts.setdefault(stem, itertools.count(1)):
            name = f"{stem or 'value'}_{number}"
            if name not in self._every:
                break
        else:
            raise AssertionError("counting never ends")
        self._every.add(name)
        return name
