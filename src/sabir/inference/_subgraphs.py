"""Subgraphs as functions of their inputs' types, and the memory of what was inferred for each application.

A loop applies its body until the types settle. Loops in loops would do so again and again, and the time would
grow exponentially with the depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sabir.base import Location
    from sabir.ir import Graph, Type, Value
    from sabir.schema import Scope

    Types: TypeAlias = tuple[Type | None, ...]
    Apply: TypeAlias = Callable[[Graph, Sequence[Type | None], Scope, Location], Types]

Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class TypedSubgraph:
    """A subgraph as a function of its inputs' types."""

    apply: Apply
    graph: Graph
    scope: Scope
    where: Location

    @property
    def inputs(self) -> Types:
        """The declared types of its inputs."""
        return tuple(v.type for v in self.graph.inputs)

    @property
    def outputs(self) -> Types:
        """The declared types of its outputs."""
        return tuple(None if v is None else v.type for v in self.graph.outputs)

    def __call__(self, *inputs: Type | None) -> Types:
        """Infer the subgraph for these inputs."""
        return self.apply(self.graph, inputs, self.scope, self.where)

    def typed(self, *inputs: Type | None) -> Types:
        """Infer the subgraph, as a call does."""
        return self(*inputs)


class Application(NamedTuple):
    """One application of a subgraph: the types of its outputs, and of every value inside it."""

    results: Types
    inside: dict[Value, Type]


class SubgraphMemo:
    """The applications of subgraphs so far, by all that they depend on."""

    def __init__(self) -> None:
        self._applications: dict[Graph, dict[Key, Application]] = {}
        self._captures: dict[Graph, tuple[Value, ...]] = {}

    def key(
        self, graph: Graph, inputs: Sequence[Type | None], scope: Scope, types: Mapping[Value, Type]
    ) -> Key:
        """Return what an application depends on: the scope, the types of its inputs and of its captures."""
        captured = self._captures.get(graph)
        if captured is None:
            captured = self._captures[graph] = graph.captures()
        return scope, tuple(inputs), tuple(map(types.get, captured))

    def find(self, graph: Graph, key: Key) -> Application | None:
        """Return an earlier application that depends on the same, or None."""
        return self._applications.get(graph, {}).get(key)

    def keep(
        self, graph: Graph, key: Key, results: Types, inside: Iterable[Value], types: Mapping[Value, Type]
    ) -> None:
        """Remember an application."""
        found = Application(results, {v: types[v] for v in inside if v in types})
        self._applications.setdefault(graph, {})[key] = found

    def forget(self, graph: Graph) -> None:
        """Drop what is remembered about a graph, as it was edited."""
        self._applications.pop(graph, None)
        self._captures.pop(graph, None)


def values_of(graph: Graph) -> list[Value]:
    """Return every value that a graph or one inside it defines."""
    return [v for inner in graph.scopes() for v in inner.defined()]
