"""The names of values in a text: those under which a save writes them, spelled as the syntax requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Graph, Labels
from sabir.syntax._words import spelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Node, Value


def _labels_around(node: Node) -> Labels:
    return Labels(*node.graphs, around=(*node.inputs, *node.outputs))


class SpelledNames:
    """The spelled names of the values of a graph, or of a single node, and of all graphs inside."""

    __slots__ = ("_labels", "_spelled")

    def __init__(self, root: Graph | Node, outside: Iterable[Value] = ()) -> None:
        """Name the values; `outside` are some that an object outside the graph refers to."""
        is_graph = isinstance(root, Graph)
        self._labels = Labels(root, outside=outside) if is_graph else _labels_around(root)
        self._spelled: dict[Value, str] = {}

    def add(self, graph: Graph) -> None:
        """Name the values of another graph that reads those named so far."""
        self._labels.add(graph)

    def of(self, value: Value | None) -> str:
        """Return the spelled name of a value; empty quotes for an input or output that is left out."""
        if value is None:
            return '""'
        found = self._spelled.get(value)
        if found is None:
            found = self._spelled[value] = spelled(self._labels(value))
        return found

    def label(self, value: Value) -> str:
        """Return the name of a value without quotes; the empty one where no value needs a name."""
        return self._labels(value)
