"""What was inferred of a subgraph, remembered by the types that it was applied to.

A loop applies its body until the types settle. Loops in loops would do so again and again, and the time would
grow with the power of the depth.
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

Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Body:
    """A subgraph as a function of its inputs' types."""

    apply: Callable[[Graph, Sequence[Type | None], Scope, Location], Types]
    graph: Graph
    scope: Scope
    where: Location

    @property
    def inputs(self) -> Types:
        """The declared types of what it takes."""
        return tuple(v.type for v in self.graph.inputs)

    @property
    def outputs(self) -> Types:
        """The declared types of what it gives."""
        return tuple(None if v is None else v.type for v in self.graph.outputs)

    def __call__(self, *inputs: Type | None) -> Types:
        """Infer the subgraph for these inputs."""
        return self.apply(self.graph, inputs, self.scope, self.where)

    def typed(self, *inputs: Type | None) -> Types:
        """Infer the subgraph, as a call does."""
        return self(*inputs)


class Found(NamedTuple):
    """The types of a subgraph's outputs, and of every value inside it."""

    results: Types
    inside: dict[Value, Type]


class Applications:
    """The applications of subgraphs so far."""

    def __init__(self) -> None:
        self._found: dict[Key, Found] = {}
        self._captures: dict[Graph, tuple[Value, ...]] = {}

    def key(
        self, graph: Graph, inputs: Sequence[Type | None], scope: Scope, types: Mapping[Value, Type]
    ) -> Key:
        """Return all that an application depends on: its inputs, what it reads from outside, its scope."""
        captured = self._captures.get(graph)
        if captured is None:
            captured = self._captures[graph] = graph.captures()
        return graph, id(scope.bindings), tuple(inputs), tuple(map(types.get, captured))

    def find(self, key: Key) -> Found | None:
        """Return what an application like this one found."""
        return self._found.get(key)

    def keep(self, key: Key, results: Types, inside: Iterable[Value], types: Mapping[Value, Type]) -> None:
        """Remember an application."""
        self._found[key] = Found(results, {v: types[v] for v in inside if v in types})


def values_of(graph: Graph) -> list[Value]:
    """Return every value that a graph or one inside it defines."""
    return [v for inner in graph.scopes() for v in inner.defined()]
