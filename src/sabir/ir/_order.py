"""The topological order of a graph's nodes."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from sabir.base import SchemaError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sabir.ir._graph import Graph
    from sabir.ir._node import Node
    from sabir.ir._value import Value

_MOST_NAMED = 5


def in_order(graph: Graph) -> tuple[Node, ...]:
    """Return the nodes of a graph in topological order, keeping their own order as far as possible.

    What the subgraphs of a node capture counts as read by the node. Raises SchemaError for a cycle.
    """
    nodes = tuple(graph)
    seen: set[Node | Graph | None] = {graph}  # its inputs and initializers
    nests = graph.may_nest
    for node in nodes:
        for value in node.inputs:
            # nearly all reads are of seen nodes; only for the others does it matter whose node it is
            if value is not None and value.source not in seen and _node_in(graph, value) is not None:
                return _sorted(nodes, graph)
        if nests and any(source not in seen for source in _captured(node, graph)):
            return _sorted(nodes, graph)
        seen.add(node)
    return nodes


def _node_in(graph: Graph, value: Value) -> Node | None:
    """Return the node of the graph that computes a value, or None."""
    node = value.node
    return node if node is not None and node.graph is graph else None


def _sources(node: Node, graph: Graph) -> Iterator[Node]:
    """Yield the nodes of the graph that compute what a node reads."""
    for value in node.reads():
        source = _node_in(graph, value)
        if source is not None:
            yield source


def _captured(node: Node, graph: Graph) -> Iterator[Node]:
    """Yield the nodes of the graph that compute what the subgraphs of a node read."""
    for value in node.captures():
        source = _node_in(graph, value)
        if source is not None:
            yield source


def _sorted(nodes: Sequence[Node], graph: Graph) -> tuple[Node, ...]:
    """Sort nodes; of those that are ready, the first in the old order comes next."""
    place = {node: index for index, node in enumerate(nodes)}
    sources = {node: dict.fromkeys(_sources(node, graph)) for node in nodes}
    readers: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node, read in sources.items():
        for source in read:
            readers[source].append(node)
    missing = {node: len(read) for node, read in sources.items()}
    ready = [place[node] for node in nodes if not missing[node]]
    found: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        found.append(node)
        for reader in readers[node]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, place[reader])
    if len(found) < len(nodes):
        raise SchemaError(_message(_cycle(sources, {node for node in nodes if missing[node]})))
    return tuple(found)


def _cycle(sources: Mapping[Node, Mapping[Node, None]], left: set[Node]) -> list[Node]:
    """Return the nodes of one cycle, each before one that reads it; every node in `left` waits for one."""
    path: dict[Node, None] = {}
    node = next(n for n in sources if n in left)
    while node not in path:
        path[node] = None
        node = next(source for source in sources[node] if source in left)
    steps = list(path)
    return steps[steps.index(node) :][::-1]


def _message(cycle: Sequence[Node]) -> str:
    shown = [_shown(node) for node in cycle[:_MOST_NAMED]]
    if len(cycle) > _MOST_NAMED:
        shown.append(f"{len(cycle) - _MOST_NAMED} more")
    if len(cycle) == 1:
        return f"{shown[0]} reads its own output, so the graph has no order"
    return f"the nodes {', '.join(shown)} read each other in a cycle, so the graph has no order"


def _shown(node: Node) -> str:
    if node.name:
        return f"{node.op} {quote(node.name)}"
    output = next((v.name for v in node.outputs if v is not None and v.name), "")
    return f"{node.op} computing {quote(output)}" if output else node.op
