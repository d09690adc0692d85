"""New nodes that are in no model until they are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.ir import Builder, Graph, Node, TensorType
from sabir.rewriting._constants import constant_node
from sabir.rewriting._replacing import release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Value
    from sabir.rewriting._point import InsertionPoint


class DetachedBuilder(Builder):
    """A builder whose nodes may read any value of a model, and can be discarded as if they had never been.

    `Rewriter.builder` makes one whose names are fresh in the model, and which infers each new node. A
    subclass may add methods: a gradient's builder knows the call that is differentiated.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> b = Rewriter(model).builder(model.graph)
    >>> y = b.Abs(model.graph.inputs[0])
    >>> [node.op for node in b.graph]
    ['Abs']
    """

    def __init__(self, *, graph: Graph | None = None, **options: Any) -> None:
        """Take the options of `Builder`; `graph` is an empty graph that is in no model."""
        super().__init__(graph=Graph() if graph is None else graph, **options)

    def place(self, point: InsertionPoint, *, constants_as_nodes: bool = False) -> list[Node]:
        """Move the nodes and initializers to a place in a model, and return the nodes.

        Contents that inference knew are dropped from the values' types: they are no declaration. With
        `constants_as_nodes` initializers become nodes, as the body of a function has none.
        """
        for value, data in list(self.graph.initializers.items()):
            self.graph.set_initializer(value, None)
            if constants_as_nodes:
                point.insert(constant_node(value, data))
            else:
                point.graph.set_initializer(value, data)
        nodes = list(self.graph)
        for node in nodes:
            for value in _computed(node):
                if isinstance(value.type, TensorType) and value.type.known is not None:
                    value.type = value.type.with_known(None)
            self.graph.detach(node)
            point.insert(node)
        return nodes

    def discard(self) -> None:
        """Erase the nodes and initializers; the values that they read are as before."""
        for node in reversed(list(self.graph)):
            for inner in node.graphs:
                if inner.parent is node:
                    release(inner)
            self.graph.erase(node)
        for value in list(self.graph.initializers):
            self.graph.set_initializer(value, None)


def _computed(node: Node) -> Iterator[Value]:
    """Yield the values that a node and the graphs inside it define."""
    yield from (v for v in node.outputs if v is not None)
    for inner in node.graphs:
        for graph in inner.scopes():
            yield from graph.defined()
