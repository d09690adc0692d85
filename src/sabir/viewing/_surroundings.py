"""A node with those near it, as a graph of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import NotFoundError, quote, suggest
from sabir.ir import Graph, Node, Value, clone_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Model

_MOST = 120  # nodes


def surroundings(model: Model, name: str, steps: int) -> Graph:
    """Return copies of the nodes of one graph that are at most so many edges from a node, itself included.

    `name` is that of the node, or of one of its results; an unnamed node has only the latter. What the nodes
    read of others are inputs or initializers, and what others read of them outputs. At most 120 nodes are
    taken, the nearest ones. Raises NotFoundError for a name that no node has, with the nearest one.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { a = Neg (x)  b = Abs (a)  c = Exp (b)  y = Relu (c) }''')
    >>> [node.op for node in surroundings(model, 'b', 1)]
    ['Neg', 'Abs', 'Exp']
    """
    center = _found(model, name)
    around = center.graph
    if around is None:
        raise NotFoundError(f"the node {quote(name)} is in no graph")
    chosen = _near(center, steps)
    copies: dict[Value, Value | None] = {}
    graph = Graph(around.name)
    for node in around:
        if node in chosen:
            for value in node.reads():
                if value not in copies and value.node not in chosen:
                    copies[value] = _entering(graph, value)
            graph.append(clone_node(node, copies))
    graph.outputs = [copies[v] for node in chosen for v in _results(node) if _leaves(v, chosen)]
    return graph


def _found(model: Model, name: str) -> Node:
    nodes = [node for graph in model.graphs() for node in graph.all_nodes()]
    found = next((node for node in nodes if node.name == name), None)
    by_result = {v.name: node for node in nodes for v in _results(node) if v.name}
    node = found or by_result.get(name)
    if node is None or not name:
        near = suggest(name, [*(one.name for one in nodes if one.name), *by_result])
        raise NotFoundError(f"the model has no node {quote(name)}, nor one with a result of this name{near}")
    return node


def _near(center: Node, steps: int) -> dict[Node, None]:
    """Return the nodes of a graph that are near one of them, the nearest first."""
    found = {center: None}
    ring = [center]
    for _ in range(steps):
        ring = [
            node for node in dict.fromkeys(n for one in ring for n in _neighbours(one)) if node not in found
        ]
        for node in ring[: _MOST - len(found)]:
            found[node] = None
        if len(found) == _MOST or not ring:
            break
    return found


def _neighbours(node: Node) -> Iterator[Node]:
    for value in node.reads():
        if value.node is not None and value.node.graph is node.graph:
            yield value.node
    for value in _results(node):
        for use in value.uses:
            if isinstance(use.user, Node) and use.user.graph is node.graph:
                yield use.user


def _results(node: Node) -> Iterable[Value]:
    return (v for v in node.outputs if v is not None)


def _entering(graph: Graph, value: Value) -> Value:
    """Return a copy of a value that the graph does not compute, as an initializer or an input of it."""
    if value.constant is not None:
        return graph.add_initializer(value.name, value.constant)
    return graph.add_input(value.name, value.type)


def _leaves(value: Value, chosen: dict[Node, None]) -> bool:
    return value.is_output or any(use.user not in chosen for use in value.uses)
