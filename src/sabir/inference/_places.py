"""Where a node stands, and the attribute that holds a subgraph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Graph

if TYPE_CHECKING:
    from sabir.base import Location
    from sabir.ir import Node, Value


def at_node(where: Location, place: int, node: Node) -> Location:
    """Return the location of the node number `place` of a graph."""
    return where.at("node", index=place, name=node.name or node.op)


def holding(node: Node, graph: Graph) -> str:
    """Return the name of the attribute of a node that holds a subgraph."""
    return next((name for name, a in node.attributes.items() if any(g is graph for g in a.graphs)), "")


def is_output(value: Value) -> bool:
    """Return whether a value is an output of a graph that stands in no node."""
    return any(isinstance(use.user, Graph) and use.user.parent is None for use in value.uses)
