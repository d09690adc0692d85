"""Places in a graph where nodes are inserted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Graph, Node


class InsertionPoint:
    """A place among the nodes of a graph; what is inserted there keeps its order.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> point = InsertionPoint.start(model.graph)
    >>> neg = point.insert(sabir.ir.Node('Neg', [model.graph.inputs[0]]))
    >>> [node.op for node in model.graph]
    ['Neg', 'Relu']
    """

    __slots__ = ("_previous", "graph")

    def __init__(self, graph: Graph, previous: Node | None) -> None:
        """Make the place right after `previous`, or, where that is None, before all nodes."""
        self.graph, self._previous = graph, previous

    @classmethod
    def start(cls, graph: Graph) -> InsertionPoint:
        """Return the place before all nodes of a graph."""
        return cls(graph, None)

    @classmethod
    def end(cls, graph: Graph) -> InsertionPoint:
        """Return the place after all nodes of a graph."""
        return cls(graph, next(reversed(graph), None))

    @classmethod
    def before(cls, node: Node) -> InsertionPoint:
        """Return the place right before a node; raises SchemaError for one that is in no graph."""
        graph = graph_of(node)
        return cls(graph, graph.previous(node))

    @classmethod
    def after(cls, node: Node) -> InsertionPoint:
        """Return the place right after a node; raises SchemaError for one that is in no graph."""
        return cls(graph_of(node), node)

    def insert(self, node: Node) -> Node:
        """Place a detached node here, after those that were inserted here before it."""
        self._previous = self.graph.insert(node, after=self._previous)
        return node


def enclosing(graph: Graph | None) -> Iterator[Graph]:
    """Yield a graph and those around it, the innermost first.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> [graph.name for graph in enclosing(model.graph[0].graph)]
    ['g']
    """
    while graph is not None:
        yield graph
        graph = None if graph.parent is None else graph.parent.graph


def graph_of(node: Node) -> Graph:
    """Return the graph that contains a node; raises SchemaError where none does.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> graph_of(model.graph[0]).name
    'g'
    """
    if node.graph is None:
        raise SchemaError(f"{node!r} is in no graph")
    return node.graph
