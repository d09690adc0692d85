"""The names under which values are saved: their own, made unique where they are missing or clash."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.ir import Graph, Value


class Labels:
    """Names for every value of a graph and of the graphs inside it.

    A value keeps its name unless another of its graph has it, or a graph inside reads an outer value that
    the name would hide.
    """

    def __init__(self, graph: Graph) -> None:
        self._names: dict[Value, str] = {}
        self._every = {v.name for g in graph.scopes() for v in g.defined()}
        self._graph(graph, {})

    def __call__(self, value: Value) -> str:
        """Return the name of a value; one from elsewhere keeps its own."""
        return self._names.get(value, value.name)

    def add(self, graph: Graph) -> None:
        """Name the values of another graph that sees those named so far."""
        self._every |= {v.name for g in graph.scopes() for v in g.defined()}
        self._graph(graph, {name: value for value, name in self._names.items()})

    def _graph(self, graph: Graph, outer: dict[str, Value]) -> None:
        here: dict[str, Value] = {}
        hidden = None
        for value in graph.defined():
            name = value.name
            if name in outer and hidden is None:
                hidden = {self(v) for v in graph.captures()}
            if (
                not name
                or here.get(name, value) is not value
                or (hidden is not None and name in outer and name in hidden)
            ):
                name = self._fresh(name)
            here[name] = value
            self._names[value] = name
        for node in graph:
            for inner in node.graphs:
                self._graph(inner, {**outer, **here})

    def _fresh(self, name: str) -> str:
        stem, number = name or "value", 0
        while name in self._every or not name:
            number += 1
            name = f"{stem}_{number}"
        self._every.add(name)
        return name
