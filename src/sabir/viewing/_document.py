"""A model as the data of its page: one value of JSON with all graphs, and what Sabir knows about them.

Graphs, nodes, values, boxes, operators and types are numbered lists, in which the others refer by number. A
box has its items as numbers: n is node n, -1 - n is box n. Texts of the model are cut; a weight is a summary.
The size of the document depends on the number of nodes, and not on the size of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import Location, NotFoundError, SchemaError, UnsupportedError, counted, run_with_limits
from sabir.checking import findings
from sabir.debugging import layer_of, node_costs
from sabir.inference import Inference, change_model_dims
from sabir.ir import (
    Expr,
    Node,
    SparseTensor,
    Tensor,
    bound_opsets,
    canonical_domain,
    check_is_model,
    resolve,
)
from sabir.opsets import STANDARD
from sabir.viewing._operators import Operators
from sabir.viewing._text import DOCUMENT, NAME, TEXT, shortened
from sabir.viewing._tree import Leaf, tree_of
from sabir.viewing._weights import weight_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sabir.base import Finding, Limits
    from sabir.ir import Attribute, Dim, Function, Graph, Model, Value
    from sabir.schema import Registry
    from sabir.viewing._layers import Layer
    from sabir.viewing._tree import Box

MOST_NODES = 200_000
_MOST_FINDINGS = 1000
_MOST_ENTRIES = 40  # attributes or entries of metadata of one node
_METADATA = 1 << 20  # characters of all metadata together
_CELLS = 1 << 20  # and of all heat maps
_SAMPLED = 1 << 25  # elements that are read of all weights together
_LEAST_OF_ONE, _MOST_OF_ONE = 1 << 12, 1 << 16
_MOST_ITEMS = 8  # of a list that is an attribute


@dataclass(frozen=True)
class ModelPage:
    """The data of a page, and the number that each node of the model has in it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> page_of(model).numbers[model.graph[0]]
    0
    """

    data: dict[str, Any]
    numbers: Mapping[Node, int]

    def add_layer(self, layer: Layer) -> None:
        """Add values of nodes that the page can show as colours."""
        self.data["layers"].append(layer.as_json())


def page_of(
    model: Model,
    dims: Mapping[str, int | str | None] | None = None,
    *,
    name: str = "",
    beside: Model | None = None,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> ModelPage:
    """Return the data of a model's page; the model is not changed.

    `dims` sets dimension variables as `set_dims` does, `name` is what the page calls the model. The main
    graph of a model `beside` it is shown too. Large tensors are sampled.

    Raises UnsupportedError for more than 200,000 nodes, NotFoundError for a dimension that the model does not
    have, and LimitError beyond `limits`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> data = page_of(model).data
    >>> data['operators'][data['nodes'][0]['op']]['name'], data['types']
    ('Relu', ['float[N]'])
    """
    shown = [_with_dims(one, dims, registry, limits) for one in (model, beside) if one is not None]
    nodes = sum(1 for one in shown for _ in _all_nodes(one))
    if nodes > MOST_NODES:
        raise UnsupportedError(
            f"a page shows at most {counted(MOST_NODES, 'node')}, and the model has {nodes:,}; "
            "`sabir.extract` returns a part of a model"
        )
    writer = _Writer(registry)
    page = run_with_limits(limits, lambda: writer.page(shown[0], name, shown[1] if beside else None))
    originals = [one for one in (model, beside) if one is not None]
    return ModelPage(page.data, dict(_renumbered(originals, shown, page.numbers)))


def _with_dims(
    model: Model, dims: Mapping[str, int | str | None] | None, registry: Registry, limits: Limits | None
) -> Model:
    check_is_model(model)
    return change_model_dims(model, dims, registry=registry, limits=limits).model if dims else model


def _renumbered(
    originals: Sequence[Model], shown: Sequence[Model], numbers: Mapping[Node, int]
) -> Iterator[tuple[Node, int]]:
    """Yield the nodes of the caller's models with the numbers of those that were shown."""
    for original, copy in zip(originals, shown, strict=True):
        for node, same in zip(_all_nodes(original), _all_nodes(copy), strict=True):
            if same in numbers:  # a function that another one of the same name hides is not shown
                yield node, numbers[same]


def _all_nodes(model: Model) -> Iterator[Node]:
    for graph in model.graphs():
        yield from graph.all_nodes()


class _Writer:
    """Writes the lists of a document, model after model and graph after graph."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._operators = Operators(registry)
        self.numbers: dict[Node, int] = {}
        self._values: dict[Value, int] = {}
        self._value_rows: list[list[Any]] = []
        self._types: dict[str, int] = {}
        self._weights: dict[str, dict[str, Any]] = {}
        self._kinds: dict[object, int] = {}
        self._nodes: list[dict[str, Any]] = []
        self._boxes: list[dict[str, Any]] = []
        self._graphs: list[dict[str, Any]] = []
        self._roots: list[int] = []  # the main graph or function body that each graph is in
        self._metadata, self._cells = _METADATA, _CELLS

    def page(self, model: Model, name: str, beside: Model | None) -> ModelPage:
        """Return the page of a model, with the main graph of another one beside its own."""
        if beside is not None:
            self._model(beside, "beside")
        main = self._model(model, "main")
        self._call_costs()
        data = {
            "model": _header(model, name),
            "main": main,
            "types": list(self._types),
            "operators": self._operators.entries,
            "graphs": self._graphs,
            "nodes": self._nodes,
            "values": self._value_rows,
            "boxes": self._boxes,
            "weights": self._weights,
            "findings": self._findings(model),
            "layers": [],
        }
        return ModelPage(data, self.numbers)

    def _model(self, model: Model, kind: str) -> int:
        """Write all graphs of a model; returns the number of the main one."""
        self._inference = Inference(model, registry=self._registry)
        self._inference.run()
        self._counted: set[Value] = set()
        weights = sum(len(scope.initializers) for graph in model.graphs() for scope in graph.scopes())
        self._sample = min(_MOST_OF_ONE, max(_LEAST_OF_ONE, _SAMPLED // max(1, weights)))
        opsets = bound_opsets(model.opsets, model.opset())
        functions = model.functions_by_key()
        self._functions = {key: self._reserved() for key in functions}
        for key, function in functions.items():
            self._function(self._functions[key], function)
        main = self._reserved()
        self._graph(main, model.graph, kind, shortened(model.graph.name, NAME) or "graph", opsets)
        for place, training in enumerate(model.training):
            steps = (("initialization", training.initialization), ("algorithm", training.algorithm))
            for step, graph in steps:
                if graph is not None:
                    self._graph(self._reserved(), graph, "training", f"training {place} {step}", opsets)
        return main

    # graphs

    def _reserved(self, around: int | None = None) -> int:
        """Return the number of a graph that is still to be written, inside another one or alone."""
        number = len(self._graphs)
        self._graphs.append({})
        self._roots.append(number if around is None else self._roots[around])
        return number

    def _function(self, number: int, function: Function) -> None:
        label = ".".join(filter(None, (canonical_domain(function.domain), function.name)))
        opsets = bound_opsets(function.opsets)
        self._graph(number, function.graph, "function", shortened(label, NAME), opsets)

    def _graph(self, number: int, graph: Graph, kind: str, label: str, opsets: Mapping[str, int]) -> None:
        """Write a graph and those inside it; a stack, so that the depth of a model costs nothing."""
        pending = [(number, graph, kind, label)]
        while pending:
            at, one, of_kind, named = pending.pop()
            self._graphs[at] = {"label": named, "kind": of_kind}
            nodes = _ordered(one)
            inputs = [v for v in one.inputs if v.constant is None]
            self._graphs[at]["inputs"] = [self._value(v) for v in inputs]
            for value in one.initializers:
                self._value(value)
            for node in nodes:
                pending += self._node(node, at, opsets)
            self._graphs[at]["outputs"] = [-1 if v is None else self._value(v) for v in one.outputs]
            self._graphs[at]["box"] = self._tree(nodes, named)
            if one.doc:
                self._graphs[at]["doc"] = shortened(one.doc, DOCUMENT)

    def _node(self, node: Node, graph: int, opsets: Mapping[str, int]) -> list[tuple[int, Graph, str, str]]:
        """Write a node; returns its subgraphs, which are still to be written."""
        self.numbers[node] = len(self._nodes)
        entry: dict[str, Any] = {
            "name": shortened(node.name, NAME),
            "op": self._operators.number(node, opsets),
            "graph": graph,
            "in": [-1 if v is None else self._value(v) for v in node.inputs],
            "out": [-1 if v is None else self._value(v) for v in node.outputs],
        }
        self._nodes.append(entry)
        subgraphs = [(self._reserved(graph), inner, "subgraph", label) for label, inner in _subgraphs(node)]
        attributes = [
            [shortened(a.name, NAME), _attribute_text(a)] for a in node.attributes.values() if not a.graphs
        ]
        captures = dict.fromkeys(v for inner in node.graphs for v in inner.captures())
        function = self._functions.get((canonical_domain(node.domain), node.op, node.overload))
        more = {
            "attrs": attributes[:_MOST_ENTRIES],
            "graphs": [number for number, *_ in subgraphs],
            "captures": [self._value(v) for v in captures],
            "doc": shortened(node.doc, TEXT),
            "meta": self._entries(node.metadata),
        }
        entry.update({key: value for key, value in more.items() if value})
        if function is not None:
            entry["function"] = function
        self._costs(node, entry)
        return subgraphs

    def _costs(self, node: Node, entry: dict[str, Any]) -> None:
        costs = node_costs(node, self._inference, self._counted).costs
        for key, number in (("params", costs.parameters), ("madds", costs.multiply_adds)):
            if number is None:
                entry[f"{key}Text"] = "?"
            elif number:
                entry[key] = _amount(number)
                if not isinstance(number, int):
                    entry[f"{key}Text"] = shortened(str(number), TEXT)

    def _call_costs(self) -> None:
        """Add to each call of a function what its body costs, the bodies that it calls first."""
        bodies: dict[int, list[dict[str, Any]]] = {graph: [] for graph in self._roots}
        for entry in self._nodes:
            bodies[self._roots[entry["graph"]]].append(entry)
        calls = {graph: {e["function"] for e in body if "function" in e} for graph, body in bodies.items()}
        try:
            order = list(TopologicalSorter(calls).static_order())
        except CycleError:  # which the checker reports
            return
        totals: dict[int, tuple[float, float]] = {}
        for graph in order:
            for entry in bodies[graph]:
                if "function" in entry:
                    entry["params"], entry["madds"] = totals[entry["function"]]
            totals[graph] = _total(bodies[graph], "params"), _total(bodies[graph], "madds")

    # values

    def _value(self, value: Value) -> int:
        number = self._values.get(value)
        if number is not None:
            return number
        self._values[value] = number = len(self._value_rows)
        kind = self._inference.type_of(value)
        text = "" if kind is None else shortened(str(kind), TEXT)
        row: list[Any] = [shortened(value.name, NAME), self._types.setdefault(text, len(self._types))]
        self._value_rows.append(row)
        if value.constant is not None:
            self._weights[str(number)] = summary = weight_summary(value.constant, self._sample)
            self._cells -= len(summary.get("map", {}).get("cells", ""))
            if self._cells < 0:  # a model of many weights has heat maps of the first ones
                summary.pop("map", None)
            if not text:
                row[1] = self._types.setdefault(_constant_type(value.constant), len(self._types))
        return number

    # boxes

    def _tree(self, nodes: Sequence[Node], label: str) -> int:
        leaves = [
            Leaf(
                self.numbers[node],
                layer_of(node),
                self._kind(node),
                tuple([self.numbers[v.node] for v in _reads(node) if v.node in self.numbers]),
                shortened(node.op, NAME),
            )
            for node in nodes
        ]
        return self._box(tree_of(leaves, label))

    def _box(self, box: Box) -> int:
        number = len(self._boxes)
        entry: dict[str, Any] = {"name": box.name, "kind": box.kind}
        self._boxes.append(entry)
        entry["items"] = [
            item.number if isinstance(item, Leaf) else -1 - self._box(item) for item in box.items
        ]
        return number

    def _kind(self, node: Node) -> int:
        entry = self._nodes[self.numbers[node]]
        plain = [(a.name, a.ref, repr(a.value)) for a in node.attributes.values() if a.type in _PLAIN]
        key = (entry["op"], tuple(plain), tuple(v is None for v in node.inputs))
        return self._kinds.setdefault(key, len(self._kinds))

    # texts

    def _entries(self, metadata: Mapping[str, str] | None) -> list[list[str]]:
        if not metadata or self._metadata <= 0:
            return []
        found = [[shortened(k, NAME), shortened(v, TEXT)] for k, v in list(metadata.items())[:_MOST_ENTRIES]]
        self._metadata -= sum(len(text) for pair in found for text in pair)
        return found

    def _findings(self, model: Model) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for finding in findings(model, registry=self._registry):
            if len(found) == _MOST_FINDINGS:
                break
            entry: dict[str, Any] = {
                "rule": finding.rule,
                "severity": finding.severity,
                "message": shortened(finding.message, DOCUMENT),
                "hint": shortened(finding.hint, DOCUMENT),
                "where": shortened(str(finding.location), DOCUMENT),
            }
            node = self._node_of(model, finding)
            if node is not None:
                entry["node"] = node
            found.append(entry)
        return found

    def _node_of(self, model: Model, finding: Finding) -> int | None:
        """Return the number of the innermost node at the location of a finding."""
        steps = finding.location.steps
        for stop in range(len(steps), 0, -1):
            if steps[stop - 1].kind != "node":
                continue
            try:
                found = resolve(model, Location(steps[:stop]))
            except NotFoundError:
                continue
            if isinstance(found, Node):
                return self.numbers.get(found)
        return None


_PLAIN = frozenset({"float", "int", "string", "floats", "ints", "strings"})


def _header(model: Model, name: str) -> dict[str, Any]:
    producer = f"{model.producer_name} {model.producer_version}".strip()
    facts = [
        ("producer", producer),
        ("IR version", str(model.ir_version)),
        *((f"operators of {domain or 'ai.onnx'}", str(version)) for domain, version in model.opsets.items()),
        ("model version", str(model.version) if model.version else ""),
        ("domain", model.domain),
        *((model.metadata or {}).items()),
    ]
    return {
        "name": shortened(name or model.graph.name or "model", NAME),
        "facts": [[shortened(k, NAME), shortened(v, TEXT)] for k, v in facts if v][:_MOST_ENTRIES],
        "doc": shortened(model.doc, DOCUMENT),
    }


def _total(entries: Iterable[Mapping[str, Any]], key: str) -> float:
    return sum(entry.get(key, 0.0) for entry in entries)


def _ordered(graph: Graph) -> Sequence[Node]:
    """Return the nodes in topological order, or in that of the file where they read each other in a cycle."""
    try:
        return graph.sorted_nodes()
    except SchemaError:  # the checker reports the cycle
        return tuple(graph)


def _reads(node: Node) -> Iterable[Value]:
    yield from (v for v in node.inputs if v is not None)
    for graph in node.graphs:
        yield from graph.captures()


def _subgraphs(node: Node) -> Iterator[tuple[str, Graph]]:
    for name, attribute in node.attributes.items():
        for place, graph in enumerate(attribute.graphs):
            yield shortened(f"{name}[{place}]" if len(attribute.graphs) > 1 else name, NAME), graph


def _attribute_text(attribute: Attribute) -> str:
    """Return an attribute as a page shows it; a long list or tensor is cut."""
    if attribute.ref:
        return shortened(f"@{attribute.ref}", TEXT)
    value: Any = attribute.value
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value  # pyright: ignore[reportUnknownVariableType] - of any attribute type
        more = f", … {len(items):,} in all" if len(items) > _MOST_ITEMS else ""
        return shortened(f"[{', '.join(map(_item_text, items[:_MOST_ITEMS]))}{more}]", TEXT)
    return shortened(_item_text(value), TEXT)


def _item_text(value: object) -> str:
    if isinstance(value, (Tensor, SparseTensor)):
        summary = weight_summary(value)
        return f"{_constant_type(value)} {summary.get('values', '')}".strip()
    if isinstance(value, float):
        return f"{value:.9g}"
    return value if isinstance(value, str) else str(value)


def _constant_type(constant: Tensor | SparseTensor) -> str:
    if isinstance(constant, SparseTensor):
        return f"sparse {constant.values.element}{list(constant.shape)}"
    kind = constant.sound_type
    return "?" if kind is None else str(kind)


def _amount(number: Dim) -> float:
    """Return a number of the page: a polynomial counts each dimension variable as 1."""
    if isinstance(number, Expr):
        number = number.substitute(dict.fromkeys(number.symbols, 1))
    return float(number) if isinstance(number, int) and np.isfinite(float(number)) else 0.0
