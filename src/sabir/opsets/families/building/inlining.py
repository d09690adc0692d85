"""A subgraph's nodes as part of the graph that a room builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import clone_node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Builder, Graph, Value


def inlined(b: Builder, graph: Graph, inputs: Iterable[Value]) -> list[Value]:
    """Emit copies of a graph's nodes on these inputs; return the values of its outputs."""
    copies: dict[Value, Value | None] = dict(zip(graph.inputs, inputs, strict=True))
    for value, data in graph.initializers.items():
        if value not in copies:  # an operand replaces a default
            copies[value] = b.initializer(value.name, data)
    for node in graph.sorted_nodes():
        b.graph.append(clone_node(node, copies))
    return [copies.get(v) or v for v in graph.outputs if v is not None]
