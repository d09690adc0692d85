"""What a picture of a graph shows: a box for each node, input and output, and a line for each value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from sabir.base import UnsupportedError, counted
from sabir.drawing._nets import Frame, Net
from sabir.ir import Graph, Tensor, canonical_domain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.ir import Function, Model, Node, Value

MOST_BOXES = 300
_MOST_MARKS = 4  # initializers and subgraphs that a box lists

Kind = Literal["node", "input", "output", "outer"]


class Box(NamedTuple):
    """A box: of a node with its operator and name, or of an input, an output or an outer value.

    `marks` are the initializers that a node reads and its subgraphs, `subject` is what the box shows.
    """

    kind: Kind
    title: str
    name: str
    marks: tuple[Mark, ...]
    subject: Node | Value


class Mark(NamedTuple):
    """A line in a box: the name of an initializer or a subgraph, and what is known of it."""

    name: str
    text: str


@dataclass
class Picture:
    """The boxes of a graph in topological order, and the values between them.

    `labels` are the types of the values of `nets`, "" where the box that a value leaves has it.
    """

    boxes: list[Box] = field(default_factory=list[Box])
    nets: list[Net] = field(default_factory=list[Net])
    values: list[Value] = field(default_factory=list["Value"])
    labels: list[str] = field(default_factory=list[str])

    def frames(self, size: Callable[[Box], tuple[int, int]], width: Callable[[str], int]) -> list[Frame]:
        """Return the sizes of the boxes, from functions that measure a box and a label."""
        labels: list[list[int]] = [[] for _ in self.boxes]
        for net, label in zip(self.nets, self.labels, strict=True):
            labels[net.source].append(width(label))
        return [Frame(*size(box), tuple(widths)) for box, widths in zip(self.boxes, labels, strict=True)]


def check_drawable(graph: Graph, most: int = MOST_BOXES) -> None:
    """Raise UnsupportedError for a graph with more nodes, inputs and outputs than a picture has boxes."""
    count = len(graph) + sum(v not in graph.initializers for v in graph.inputs) + len(graph.outputs)
    if count > most:
        raise UnsupportedError(
            f"a picture has at most {most} boxes, and the graph has {count:,} nodes, inputs and outputs"
        )


def graph_of(item: Graph | Model | Function) -> Graph:
    """Return a graph, the main graph of a model, or the body of a function."""
    return item if isinstance(item, Graph) else item.graph


def picture_of(item: Graph | Model | Function) -> Picture:
    """Return what a picture of a graph shows.

    Raises UnsupportedError for too many boxes, SchemaError for nodes that read each other in a cycle.
    """
    graph = graph_of(item)
    check_drawable(graph)
    return _Drawing(graph).picture()


class _Drawing:
    """Collects the boxes of one graph, and the values that they read."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes = graph.sorted_nodes()
        self._folded = {node.outputs[0]: node for node in self._nodes if _is_folded(node)}
        self._boxes: list[Box] = []
        self._sources: dict[Value, int] = {}
        self._readers: dict[Value, list[int]] = {}

    def picture(self) -> Picture:
        """Return the picture."""
        graph = self._graph
        read = {node: tuple(dict.fromkeys(node.reads())) for node in self._nodes}
        for value in dict.fromkeys(graph.inputs):
            if value not in graph.initializers:
                self._add_source("input", value)
        computed = {v for node in self._nodes for v in node.outputs if v is not None}
        for value in dict.fromkeys(v for values in read.values() for v in values):
            if value not in self._sources and value not in computed and value not in graph.initializers:
                self._add_source("outer", value)
        for node in self._nodes:
            if not _is_folded(node):
                self._add_node(node, read[node])
        for value in graph.outputs:
            if value is not None:
                self._add_output(value)
        return self._connected()

    def _connected(self) -> Picture:
        """Return the boxes with the values that lead from one to others."""
        exits = [0] * len(self._boxes)
        picture = Picture(self._boxes)
        for value, readers in self._readers.items():
            source = self._sources[value]
            picture.nets.append(Net(source, exits[source], tuple(dict.fromkeys(readers))))
            picture.values.append(value)
            picture.labels.append(type_text(value) if self._boxes[source].kind == "node" else "")
            exits[source] += 1
        return picture

    def _add_source(self, kind: Kind, value: Value) -> None:
        self._sources[value] = len(self._boxes)
        self._boxes.append(Box(kind, value.name, type_text(value), (), value))

    def _add_node(self, node: Node, read: tuple[Value, ...]) -> None:
        number = len(self._boxes)
        for value in read:
            if value in self._sources:
                self._readers.setdefault(value, []).append(number)
        marks = [self._mark(v) for v in read if v not in self._sources]
        marks += [Mark(name, counted(len(graph), "node")) for name, graph in subgraphs(node)]
        if len(marks) > _MOST_MARKS:
            marks[_MOST_MARKS - 1 :] = [Mark("", f"and {len(marks) - _MOST_MARKS + 1} more")]
        self._boxes.append(Box("node", operator_text(node), node.name, tuple(marks), node))
        self._sources.update((v, number) for v in node.outputs if v is not None)

    def _mark(self, value: Value) -> Mark:
        """Return the mark of an initializer, or of a node that has no box of its own."""
        node = self._folded.get(value)
        return Mark(value.name if node is None else operator_text(node), type_text(value))

    def _add_output(self, value: Value) -> None:
        if value in self._sources:
            self._readers.setdefault(value, []).append(len(self._boxes))
        is_constant = value in self._graph.initializers and value not in self._sources
        marks = (Mark("initializer", ""),) if is_constant else ()
        self._boxes.append(Box("output", value.name, type_text(value), marks, value))


def _is_folded(node: Node) -> bool:
    """Return whether a node is a mark in the box of its only reader: it has no operands, as a constant."""
    if node.inputs or node.graphs or len(node.outputs) != 1:
        return False
    value = node.outputs[0]
    uses = () if value is None else value.uses
    return len(uses) == 1 and getattr(uses[0].user, "graph", None) is node.graph


def subgraphs(node: Node) -> Iterator[tuple[str, Graph]]:
    """Yield the graphs among a node's attributes with the names of these."""
    for name, attribute in node.attributes.items():
        for graph in attribute.graphs:
            yield name, graph


def operator_text(node: Node) -> str:
    """Return the operator of a node with its domain."""
    domain = canonical_domain(node.domain)
    return f"{domain}.{node.op}" if domain else node.op


def type_text(value: Value) -> str:
    """Return the type of a value as far as it is declared; no data is read."""
    constant = value.constant
    known = value.type or (constant.type if isinstance(constant, Tensor) else None)
    return "" if known is None else str(known)


__all__ = [
    "MOST_BOXES",
    "Box",
    "Mark",
    "Picture",
    "check_drawable",
    "graph_of",
    "operator_text",
    "picture_of",
    "subgraphs",
    "type_text",
]
