"""The lists of a page: graphs, nodes, values, boxes, operators, types and weights, which refer by number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import SchemaError
from sabir.debugging import layer_of
from sabir.inference import Inference
from sabir.ir import bound_opsets, canonical_domain
from sabir.viewing._attributes import attribute_text, constant_type
from sabir.viewing._costs import add_costs, add_costs_of_calls
from sabir.viewing._operators import Operators
from sabir.viewing._texts import (
    DOCUMENT,
    MOST_ENTRIES,
    NAME,
    TEXT,
    entries,
    shortened,
)
from sabir.viewing._tree import Leaf, tree_of
from sabir.viewing._weights import weight_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sabir.ir import FunctionKey, Graph, Model, Node, Value
    from sabir.schema import Registry
    from sabir.viewing._tree import Box

_METADATA = 1 << 20  # characters of all metadata together
_CELLS = 1 << 20  # and of all heat maps
_SAMPLED = 1 << 25  # elements that are read of all weights together
_LEAST_OF_ONE, _MOST_OF_ONE = 1 << 12, 1 << 16
_NOTHING = -1  # an operand or a result that is left out
_PLAIN = frozenset({"float", "int", "string", "floats", "ints", "strings"})


@dataclass
class _Source:
    """What is known of the model that is written: types, functions, and how much of a weight is read."""

    inference: Inference
    functions: Mapping[FunctionKey, int]
    sample: int
    counted: set[Value] = field(default_factory=set["Value"])


class _Pending(NamedTuple):
    """A graph that has a number, and is still to be written."""

    number: int
    graph: Graph
    kind: str
    label: str


class Writer:
    """Writes the lists of a page, model after model; `numbers` has the nodes that were written."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._operators = Operators(registry)
        self.numbers: dict[Node, int] = {}
        self._nodes: list[dict[str, Any]] = []
        self._boxes: list[dict[str, Any]] = []
        self._graphs: list[dict[str, Any]] = []
        self._roots: list[int] = []  # the main graph or function body around each graph
        self._values: dict[Value, int] = {}
        self._value_rows: list[list[Any]] = []
        self._types: dict[str, int] = {}
        self._weights: dict[str, dict[str, Any]] = {}
        self._kinds: dict[object, int] = {}
        self._metadata, self._cells = _METADATA, _CELLS

    def lists(self) -> dict[str, Any]:
        """Return the lists by their names in the page."""
        add_costs_of_calls(self._nodes, self._roots)
        return {
            "types": list(self._types),
            "operators": self._operators.entries,
            "graphs": self._graphs,
            "nodes": self._nodes,
            "values": self._value_rows,
            "boxes": self._boxes,
            "weights": self._weights,
        }

    def add(self, model: Model, kind: str) -> int:
        """Write all graphs of a model; returns the number of the main one, which is of this kind."""
        inference = Inference(model, registry=self._registry)
        inference.run()
        functions = model.functions_by_key()
        weights = sum(len(scope.initializers) for graph in model.graphs() for scope in graph.scopes())
        sample = min(_MOST_OF_ONE, max(_LEAST_OF_ONE, _SAMPLED // max(1, weights)))
        source = _Source(inference, {key: self._reserved() for key in functions}, sample)
        for key, function in functions.items():
            label = ".".join(filter(None, (canonical_domain(function.domain), function.name)))
            pending = _Pending(source.functions[key], function.graph, "function", shortened(label, NAME))
            self._write(pending, bound_opsets(function.opsets), source)
        opsets = bound_opsets(model.opsets, model.opset())
        main = self._reserved()
        label = shortened(model.graph.name, NAME) or "graph"
        label = f"other model: {label}" if kind == "beside" else label
        self._write(_Pending(main, model.graph, kind, label), opsets, source)
        for graph, label in _training(model):
            self._write(_Pending(self._reserved(), graph, "training", label), opsets, source)
        return main

    def _reserved(self, around: int | None = None) -> int:
        """Return the number of a graph that is still to be written, inside another one or alone."""
        number = len(self._graphs)
        self._graphs.append({})
        self._roots.append(number if around is None else self._roots[around])
        return number

    def _write(self, root: _Pending, opsets: Mapping[str, int], source: _Source) -> None:
        """Write a graph and those inside it; a list of them, so that the depth of a model costs nothing."""
        pending = [root]
        while pending:
            number, graph, kind, label = pending.pop()
            nodes = _ordered(graph)
            inputs = [self._value(v, source) for v in graph.inputs if v.constant is None]
            for value in graph.initializers:
                self._value(value, source)
            for node in nodes:
                pending += self._node(node, number, opsets, source)
            self._graphs[number] = {
                "label": label,
                "kind": kind,
                "inputs": inputs,
                "outputs": self._places(graph.outputs, source),
                "box": self._tree(nodes, label),
            }
            if graph.doc:
                self._graphs[number]["doc"] = shortened(graph.doc, DOCUMENT)

    # nodes

    def _node(self, node: Node, graph: int, opsets: Mapping[str, int], source: _Source) -> list[_Pending]:
        """Write a node; returns its subgraphs, which are still to be written."""
        self.numbers[node] = len(self._nodes)
        entry: dict[str, Any] = {
            "name": shortened(node.name, NAME),
            "op": self._operators.number(node, opsets),
            "graph": graph,
            "in": self._places(node.inputs, source),
            "out": self._places(node.outputs, source),
        }
        self._nodes.append(entry)
        subgraphs = [
            _Pending(self._reserved(graph), inner, "subgraph", label) for label, inner in _subgraphs(node)
        ]
        attributes = [
            [shortened(a.name, NAME), attribute_text(a)] for a in node.attributes.values() if not a.graphs
        ]
        more = {
            "attrs": attributes[:MOST_ENTRIES],
            "graphs": [pending.number for pending in subgraphs],
            "captures": self._places(dict.fromkeys(node.captures()), source),
            "doc": shortened(node.doc, TEXT),
            "meta": self._entries(node.metadata),
        }
        entry.update({key: value for key, value in more.items() if value})
        function = source.functions.get((canonical_domain(node.domain), node.op, node.overload))
        if function is not None:
            entry["function"] = function
        add_costs(entry, node, source.inference, source.counted)
        return subgraphs

    def _entries(self, metadata: Mapping[str, str] | None) -> list[list[str]]:
        """Return the metadata of a node, while the page has room for it."""
        if not metadata or self._metadata <= 0:
            return []
        found = entries(metadata.items())
        self._metadata -= sum(len(text) for pair in found for text in pair)
        return found

    # values

    def _places(self, values: Iterable[Value | None], source: _Source) -> list[int]:
        return [_NOTHING if value is None else self._value(value, source) for value in values]

    def _value(self, value: Value, source: _Source) -> int:
        number = self._values.get(value)
        if number is not None:
            return number
        self._values[value] = number = len(self._value_rows)
        kind = source.inference.type_of(value)
        text = "" if kind is None else shortened(str(kind), TEXT)
        if value.constant is not None:
            text = text or constant_type(value.constant)
            self._weights[str(number)] = summary = weight_summary(value.constant, source.sample)
            self._cells -= len(summary.get("map", {}).get("cells", ""))
            if self._cells < 0:  # a model of many weights has heat maps of the first ones
                summary.pop("map", None)
        self._value_rows.append([shortened(value.name, NAME), self._types.setdefault(text, len(self._types))])
        return number

    # boxes

    def _tree(self, nodes: Sequence[Node], label: str) -> int:
        return self._box(tree_of(map(self._leaf, nodes), label))

    def _leaf(self, node: Node) -> Leaf:
        read = [v.node for v in node.reads()]
        reads = tuple([self.numbers[n] for n in read if n is not None and n in self.numbers])
        return Leaf(self.numbers[node], layer_of(node), self._kind(node), reads, shortened(node.op, NAME))

    def _kind(self, node: Node) -> int:
        """Return a number that nodes share which call one operator with the same attributes."""
        plain = [(a.name, a.ref, repr(a.value)) for a in node.attributes.values() if a.type in _PLAIN]
        operator = self._nodes[self.numbers[node]]["op"]
        key = (operator, tuple(plain), tuple([v is None for v in node.inputs]))
        return self._kinds.setdefault(key, len(self._kinds))

    def _box(self, box: Box) -> int:
        number = len(self._boxes)
        entry: dict[str, Any] = {"name": box.name, "kind": box.kind}
        self._boxes.append(entry)
        entry["items"] = [
            item.number if isinstance(item, Leaf) else -1 - self._box(item) for item in box.items
        ]
        return number


def _training(model: Model) -> Iterator[tuple[Graph, str]]:
    for place, training in enumerate(model.training):
        if training.initialization is not None:
            yield training.initialization, f"training {place} initialization"
        if training.algorithm is not None:
            yield training.algorithm, f"training {place} algorithm"


def _ordered(graph: Graph) -> Sequence[Node]:
    """Return the nodes in topological order, or in that of the file where they read each other in a cycle."""
    try:
        return graph.sorted_nodes()
    except SchemaError:  # the checker reports the cycle
        return tuple(graph)


def _subgraphs(node: Node) -> Iterator[tuple[str, Graph]]:
    for name, attribute in node.attributes.items():
        for place, graph in enumerate(attribute.graphs):
            yield shortened(f"{name}[{place}]" if len(attribute.graphs) > 1 else name, NAME), graph
