"""The location of a node, and the attribute that contains a subgraph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Graph

if TYPE_CHECKING:
    from sabir.base import Location
    from sabir.ir import Node, Value


def at_node(where: Location, index: int, node: Node) -> Location:
    """Return the location of the node number `index` of the graph at `where`."""
    return where.at("node", index=index, name=node.name or node.op)


def at_result(where: Location, index: int, node: Node, value: Value) -> Location:
    """Return the location of a result of the node number `index` of the graph at `where`."""
    return at_node(where, index, node).at("output", index=node.outputs.index(value), name=value.name)


def attribute_of(node: Node, graph: Graph) -> str:
    """Return the name of the attribute of a node that contains a subgraph."""
    return next((name for name, a in node.attributes.items() if any(g is graph for g in a.graphs)), "")


def is_output(value: Value) -> bool:
    """Return whether a value is an output of a root graph."""
    return any(isinstance(use.user, Graph) and use.user.parent is None for use in value.uses)
