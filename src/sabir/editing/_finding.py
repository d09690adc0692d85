"""Values and nodes that the caller of an edit names, in the main graph and in the graphs inside it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from sabir.base import NotFoundError, quote, suggest
from sabir.ir import Node, Value
from sabir.rewriting import enclosing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Graph, Model, ValueOrName

_MOST_LISTED = 5
_Named = TypeVar("_Named", Value, Node)


class Finder:
    """Finds the values and nodes of one model; a name of the main graph comes before one of a subgraph."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def _of_main_graph(self) -> dict[str, list[Value]]:
        return _by_name(self.model.graph.defined())

    @cached_property
    def _of_subgraphs(self) -> dict[str, list[Value]]:
        graphs = [g for g in self.model.graph.scopes() if g is not self.model.graph]
        return _by_name(v for graph in graphs for v in graph.defined())

    @cached_property
    def _nodes(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in self.model.graph.all_nodes():
            if node.name:
                found.setdefault(node.name, []).append(node)
        return found

    def value(self, name: ValueOrName) -> Value:
        """Return the value of a name, or a value of the model unchanged.

        Raises NotFoundError where no value has the name, with the nearest one, or where several have it.
        """
        if isinstance(name, Value):
            self._require_inside(name, name.home)
            return name
        found = self._of_main_graph.get(name) or self._of_subgraphs.get(name)
        if not name or found is None:
            raise NotFoundError(f"the model has no value {quote(name)}{self._hint(name)}")
        return _only(found, "value", name)

    def values(self, names: Iterable[ValueOrName] | ValueOrName) -> list[Value]:
        """Return the values of several names, each once; raises as `value` does."""
        listed = [names] if isinstance(names, (str, Value)) else names
        return list(dict.fromkeys(map(self.value, listed)))

    def node(self, name: str | Node) -> Node:
        """Return the node of a name, or the one that computes the value of that name; raises as `value`."""
        if not isinstance(name, str):
            self._require_inside(name, name.graph)
            return name
        found = self._nodes.get(name)
        if found is not None:
            return _only(found, "node", name)
        values = self._of_main_graph.get(name) or self._of_subgraphs.get(name) or []
        nodes = [v.node for v in values if v.node is not None]
        if not name or not nodes:
            near = suggest(name, self._nodes) or suggest(name, self._of_main_graph)
            raise NotFoundError(f"the model has no node {quote(name)}{near}")
        return _only(nodes, "node", name)

    def _hint(self, name: str) -> str:
        """Return what a message about a missing value ends with: its function, or the nearest name."""
        for function in self.model.functions:
            if name and any(v.name == name for graph in function.graph.scopes() for v in graph.defined()):
                return f" outside of its functions; it is in {function!r}: inline that first (`sabir inline`)"
        return suggest(name, self._of_main_graph) or suggest(name, self._of_subgraphs)

    def _require_inside(self, one: Value | Node, graph: Graph | None) -> None:
        if self.model.graph not in enclosing(graph):
            raise NotFoundError(
                f"{one!r} is not in the main graph of {self.model!r}, or in a graph inside it"
            )


def cloned(model: Model) -> tuple[Model, dict[Value, Value]]:
    """Return a copy of a model, and the copy of each value of the main graph."""
    copy = model.clone()
    return copy, dict(zip(model.graph.defined(), copy.graph.defined(), strict=True))


def home_of(value: Value) -> Graph:
    """Return the graph that defines a value; raises NotFoundError where none does."""
    if value.home is None:
        raise NotFoundError(f"nothing defines {value!r}")
    return value.home


def described(graph: Graph) -> str:
    """Return a graph as messages name it: `the main graph`, or `the graph 'body' of <Node Loop>`."""
    return "the main graph" if graph.parent is None else f"the graph {quote(graph.name)} of {graph.parent!r}"


def _by_name(values: Iterable[Value]) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for value in values:
        found.setdefault(value.name, []).append(value)
    return found


def _only(found: list[_Named], what: str, name: str) -> _Named:
    if len(found) > 1:
        listed = ", ".join(map(repr, found[:_MOST_LISTED])) + (", ..." if len(found) > _MOST_LISTED else "")
        raise NotFoundError(f"the model has {len(found)} {what}s {quote(name)}: {listed}; pass the object")
    return found[0]
