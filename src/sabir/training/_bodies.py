"""Parameters that the bodies of If, Loop and Scan contain, as initializers of the main graph."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sabir.ir import FreshNames, Tensor, Value
from sabir.rewriting import constant_of
from sabir.training._exported import kind_of
from sabir.training._parameters import matches
from sabir.training._roles import Roles
from sabir.training._value_names import verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import Graph, Model


def lift_from_bodies(model: Model, trainable: Sequence[str] = ()) -> None:
    """Move what may be trained from the bodies of a model's nodes to its main graph, which they capture.

    These are the constants that are parameters by what the exporter noted, by their use or their name, and
    those whose names match `trainable`. A name that several values of the model have gets a number.
    """
    graph, roles = model.graph, Roles(model)
    names = Counter(v.name for inner in graph.scopes() for v in inner.defined())
    fresh = FreshNames(names)
    for inner in list(_bodies(graph)):
        for value, data in list(_constants(inner)):
            is_used = any(role.kind == "parameter" for role in roles.of(value))
            is_named = verdict(value.name, one_number=data.size == 1) == "parameter"
            if is_used or is_named or kind_of(value) == "PARAMETER" or matches(value.name, trainable):
                name = value.name if names[value.name] == 1 else fresh.fresh(value.name)
                lift(graph, value, data, name)


def lift(graph: Graph, value: Value, data: Tensor, name: str) -> None:
    """Put an initializer of a graph in the place of a constant of a node, or of a body inside the graph."""
    own, node, home = Value(name), value.node, value.home
    own.metadata, value.name = value.metadata, ""
    graph.set_initializer(own, data)
    value.replace_with(own)
    if node is not None and node.graph is not None:
        node.graph.erase(node)
    elif home is not None:
        home.set_initializer(value, None)


def initializers_of_bodies(graph: Graph) -> Iterator[tuple[Value, Tensor]]:
    """Yield the initializers of bodies that are dense tensors of floating-point numbers."""
    for inner in _bodies(graph):
        yield from ((value, data) for value, data in _constants(inner) if value.node is None)


def _bodies(graph: Graph) -> Iterator[Graph]:
    for node in graph:
        for inner in node.graphs:
            yield inner
            yield from _bodies(inner)


def _constants(graph: Graph) -> Iterator[tuple[Value, Tensor]]:
    """Yield the constants of a body that are dense tensors of floating-point numbers."""
    found = [v for v in graph.initializers if not v.is_input]
    found += [node.output for node in graph if node.op == "Constant"]
    for value in found:
        data = constant_of(value)
        if isinstance(data, Tensor) and data.element.is_float:
            yield value, data


__all__ = ["initializers_of_bodies", "lift", "lift_from_bodies"]
