"""Numbers for contents: two objects, of one model or of two, have the same number where they are the same.

A value is identified by what it is computed from: an input by its name, a constant by its bits, a result by
the operator, the attributes and the identities of the operands. So names of inner values and the order of
nodes do not matter. Numbers are found in one table (hash-consing), so that shared parts are visited once.
"""

from __future__ import annotations

import struct
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, cast

from sabir.base import SchemaError, check_depth, quote
from sabir.comparison._ports import DEFAULTS_SINCE
from sabir.comparison._references import version_in
from sabir.ir import SparseTensor, bound_opsets, canonical_domain, contents_digest

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from sabir.ir import Attribute, Constant, Function, FunctionKey, Graph, Model, Node, Tensor, Value
    from sabir.schema import Registry


class Numbers:
    """The table of contents, shared by the models that are compared."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._tensors: dict[int, tuple[Tensor, int]] = {}

    def of(self, content: Hashable) -> int:
        """Return the number of a content."""
        return self._numbers.setdefault(content, len(self._numbers))

    def of_constant(self, constant: Constant) -> int:
        """Return the number of a tensor; raises as `Tensor.raw` does for data that cannot be read."""
        if isinstance(constant, SparseTensor):
            parts = self.of_constant(constant.values), self.of_constant(constant.indices)
            return self.of(("sparse", *parts, constant.shape))
        known = self._tensors.get(id(constant))
        if known is None:
            digest = contents_digest(constant)
            # the tensor is kept too, so that no other one gets its id
            known = constant, self.of(("tensor", constant.element.number, constant.shape, digest))
            self._tensors[id(constant)] = known
        return known[1]


class Identities:
    """The identities of the values, nodes, graphs and functions of one model.

    `constants` are the values that depend on constants alone. `versions` has, for each node, the version of
    its operator: `since_version` where the registry has the operator, else the import of its domain. Raises
    SchemaError for nodes or functions that read or call each other in a cycle, LimitError for graphs nested
    too deep.
    """

    def __init__(self, model: Model, numbers: Numbers, registry: Registry) -> None:
        self.model, self.numbers, self._registry = model, numbers, registry
        self.values: dict[Value, int] = {}
        self.constants: set[Value] = set()
        self.nodes: dict[Node, int] = {}
        self.attributes: dict[Node, dict[str, int]] = {}
        self.order: dict[Graph, tuple[Node, ...]] = {}
        self.functions: dict[FunctionKey, int] = {}
        self.defaults: dict[FunctionKey, tuple[tuple[str, int | None], ...]] = {}
        self.versions: dict[Node, int | None] = {}
        self._attributes: dict[int, int] = {}
        self._since: dict[tuple[str, str, int | None], int | None] = {}
        by_key = model.functions_by_key()
        for key in _callees_first(by_key):
            self.functions[key] = self._function(by_key[key])
        imports = bound_opsets(model.opsets, model.opset())
        for graph in main_graphs(model):
            self._graph(graph, imports, 1, named=True)

    def of_value(self, value: Value | None) -> int | None:
        """Return the identity of a value; of one that nothing defines, by its name."""
        if value is None:
            return None
        found = self.values.get(value)
        return self.numbers.of(("undefined", value.name)) if found is None else found

    def since(self, domain: str, op: str, imported: int | None) -> int | None:
        """Return the version of an operator in force in an operator set; the set's where it is not known."""
        key = (domain, op, imported)
        if key not in self._since:
            self._since[key] = version_in(self._registry, domain, op, imported)
        return self._since[key]

    def _function(self, function: Function) -> int:
        imports = bound_opsets(function.opsets)
        defaults = tuple(
            (name, None if default is None else self._attribute(default, imports, 1))
            for name, default in sorted(function.attributes.items())
        )
        self.defaults[function.key] = defaults
        return self.numbers.of(("function", function.key, defaults, self._graph(function.graph, imports, 1)))

    def _graph(self, graph: Graph, imports: Mapping[str, int], depth: int, *, named: bool = False) -> int:
        """Identify everything in a graph; `named` inputs are known by their names, others by their places."""
        check_depth(depth)
        defaults: list[tuple[int, int]] = []
        inputs = set(graph.inputs)
        for index, value in enumerate(graph.inputs):
            self.values[value] = self.numbers.of(("input", value.name) if named else ("formal", depth, index))
        for value, data in graph.initializers.items():
            number = self.numbers.of_constant(data)
            if value not in inputs or (named and self.model.ir_version < DEFAULTS_SINCE):
                self.values[value] = number
                self.constants.add(value)
            elif not named:
                defaults.append((self.values[value], number))
        self.order[graph] = graph.sorted_nodes()
        for node in self.order[graph]:
            self._node(node, imports, depth)
        return self.numbers.of((
            "graph", len(inputs), tuple(sorted(defaults)), self.nodes_of(graph),
            tuple(map(self.of_value, graph.outputs)), self.annotations_of(graph),
        ))  # fmt: skip

    def nodes_of(self, graph: Graph) -> frozenset[tuple[int, int]]:
        """Return the identities of the nodes of a graph, each with the number of such nodes."""
        return frozenset(Counter(self.nodes[node] for node in graph).items())

    def annotations_of(self, graph: Graph) -> frozenset[Hashable]:
        """Return the quantization annotations of a graph: each value with its parameters."""
        return frozenset(
            (self.of_value(a.value), tuple((key, self.of_value(value)) for key, value in a.parameters))
            for a in graph.annotations
        )

    def _node(self, node: Node, imports: Mapping[str, int], depth: int) -> None:
        domain = canonical_domain(node.domain)
        function = self.functions.get((domain, node.op, node.overload))
        version = None if function is not None else self.since(domain, node.op, imports.get(domain))
        attributes = {name: self._attribute(a, imports, depth) for name, a in sorted(node.attributes.items())}
        operands = tuple(map(self.of_value, _without_absent(node.inputs)))
        results = _without_absent(node.outputs)
        presence = tuple(value is not None for value in results)
        number = self.numbers.of((
            "node", domain, node.op, node.overload, function, version, tuple(attributes.items()), operands,
            presence,
        ))  # fmt: skip
        self.nodes[node], self.versions[node], self.attributes[node] = number, version, attributes
        is_constant = all(v is None or v in self.constants for v in node.inputs) and not node.graphs
        for index, value in enumerate(results):
            if value is not None:
                self.values[value] = self.numbers.of(("result", number, index))
                if is_constant:
                    self.constants.add(value)

    def _attribute(self, attribute: Attribute, imports: Mapping[str, int], depth: int) -> int:
        if attribute.graphs:
            return self.numbers.of((attribute.type, self._content(attribute, imports, depth)))
        known = self._attributes.get(id(attribute))
        if known is None:  # a reader makes equal attributes one object; the model keeps it, and so its id
            content = self._content(attribute, imports, depth)
            known = self.numbers.of(("attribute", attribute.type, attribute.ref, content))
            self._attributes[id(attribute)] = known
        return known

    def _content(self, attribute: Attribute, imports: Mapping[str, int], depth: int) -> Hashable:
        value: Any = attribute.value
        if attribute.ref or value is None:
            return None
        items = cast("Iterable[Any]", value if isinstance(value, tuple) else (value,))
        match attribute.type:
            case "float" | "floats":  # by bits: a NaN equals itself, and 0.0 is not -0.0
                return tuple(struct.pack("<d", item) for item in items)
            case "tensor" | "tensors" | "sparse_tensor" | "sparse_tensors":
                return tuple(map(self.numbers.of_constant, items))
            case "graph" | "graphs":
                return tuple(self._graph(graph, imports, depth + 1) for graph in items)
            case _:
                return tuple(items)


def _without_absent(values: Iterable[Value | None]) -> list[Value | None]:
    """Return operands or results without those left out at the end, which need not be listed."""
    found = list(values)
    while found and found[-1] is None:
        found.pop()
    return found


def main_graphs(model: Model) -> list[Graph]:
    """Return the main graph and those of training, which read its values."""
    steps = [graph for t in model.training for graph in (t.initialization, t.algorithm)]
    return [model.graph, *(graph for graph in steps if graph is not None)]


def _callees_first(functions: Mapping[FunctionKey, Function]) -> Iterable[FunctionKey]:
    """Return the functions, each after those that it calls; raises SchemaError for a cycle."""
    calls: dict[FunctionKey, set[FunctionKey]] = {}
    for key, function in functions.items():
        roots = [
            function.graph,
            *(g for a in function.attributes.values() if a is not None for g in a.graphs),
        ]
        nodes = (node for root in roots for node in root.all_nodes())
        called = {(canonical_domain(node.domain), node.op, node.overload) for node in nodes}
        calls[key] = called & functions.keys()
    try:
        return tuple(TopologicalSorter(calls).static_order())
    except CycleError as error:
        names = ", ".join(quote(".".join(filter(None, key[:2]))) for key in error.args[1][1:])
        raise SchemaError(f"the functions {names} call each other in a cycle") from error
