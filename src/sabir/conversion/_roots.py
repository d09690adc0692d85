"""A root graph on its way across boundaries: which of its nodes call which operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import bound_opsets, canonical_domain
from sabir.rewriting import enclosing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Function, Graph, Model, Node

Name = tuple[str, str]
"""The domain and the name of an operator."""


class Root:
    """A main graph, training graph or function body, with the operator sets that its nodes call now.

    `opsets` has the version of each domain by its canonical name. The nodes of subgraphs belong to the root
    around them.
    """

    def __init__(self, graph: Graph, opsets: dict[str, int], function: Function | None = None) -> None:
        self.graph, self.opsets, self.function = graph, opsets, function
        self._nodes: dict[Name, dict[Node, None]] = {}
        self.add(graph.all_nodes())

    def add(self, nodes: Iterable[Node]) -> None:
        """Add nodes that are new in the graph or in one inside it."""
        for node in nodes:
            self._nodes.setdefault((canonical_domain(node.domain), node.op), {})[node] = None

    def drop(self, node: Node) -> None:
        """Forget a node, which is not converted any further."""
        self._nodes.get((canonical_domain(node.domain), node.op), {}).pop(node, None)

    def names(self, domain: str) -> list[str]:
        """Return the names of the operators of a domain that nodes call now."""
        return [name for (d, name), nodes in self._nodes.items() if d == domain and nodes]

    def calls(self, domain: str, name: str) -> list[Node]:
        """Return the nodes that call an operator now, those inside other nodes too."""
        nodes = self._nodes.get((domain, name), {})
        gone = [node for node in nodes if not self.has(node)]
        for node in gone:
            del nodes[node]
        return list(nodes)

    def has(self, node: Node) -> bool:
        """Return whether a node is in the root graph or inside a node that is."""
        return any(graph is self.graph for graph in enclosing(node.graph))


def roots_of(model: Model) -> Iterator[Root]:
    """Yield the roots of a model: the bodies of its functions first, then the main and training graphs."""
    default = model.opset()
    bodies = {function.graph for function in model.functions}
    for function in model.functions:
        yield Root(function.graph, bound_opsets(function.opsets, default), function)
    for graph in model.graphs():
        if graph not in bodies:
            yield Root(graph, bound_opsets(model.opsets, default))
