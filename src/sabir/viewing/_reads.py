"""What nodes read: their operands, and what their subgraphs capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Node, Value


def captures_of(node: Node) -> Iterator[Value]:
    """Yield the values of other graphs that the subgraphs of a node read."""
    for graph in node.graphs:
        yield from graph.captures()


def reads_of(node: Node) -> Iterator[Value]:
    """Yield the operands of a node, without those that are left out, and what its subgraphs read."""
    yield from (v for v in node.inputs if v is not None)
    yield from captures_of(node)
