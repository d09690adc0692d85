"""The order in which the nodes of a graph are inferred: topological, whatever order the file has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sabir.ir import Graph, Node


class Orders:
    """The order of each graph, found once: the body of a loop is inferred many times."""

    def __init__(self) -> None:
        self._orders: dict[Graph, tuple[tuple[Node, ...], dict[Node, int] | None]] = {}

    def placed(self, graph: Graph, report: Callable[[SchemaError], None]) -> Iterable[tuple[int, Node]]:
        """Return the nodes in the order in which to infer them, each with its index in the graph.

        Nodes that read one another in a cycle are reported, and the graph keeps its own order.
        """
        found = self._orders.get(graph)
        if found is None:
            found = self._orders[graph] = _order(graph, report)
        order, places = found
        return enumerate(order) if places is None else ((places[node], node) for node in order)

    def forget(self, graph: Graph) -> None:
        """Drop the order of a graph, as it was edited."""
        self._orders.pop(graph, None)


def _order(
    graph: Graph, report: Callable[[SchemaError], None]
) -> tuple[tuple[Node, ...], dict[Node, int] | None]:
    nodes = tuple(graph)
    try:
        order = graph.sorted_nodes()
    except SchemaError as error:
        report(error)
        return nodes, None
    return order, None if order == nodes else {node: place for place, node in enumerate(nodes)}
