"""A new model of copies of some nodes, with what they need: constants, functions, imports, types."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sabir.inference import Inference, without_contents
from sabir.ir import (
    CONSTANTS,
    Annotation,
    FreshNames,
    Function,
    Graph,
    Model,
    TensorType,
    Value,
    canonical_domain,
    clone_function,
    clone_node,
    drop_imports,
    unused_imports,
)
from sabir.rewriting import enclosing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.editing._tracing import Trace
    from sabir.ir import Node, Type
    from sabir.schema import Registry


@dataclass(frozen=True)
class Part:
    """A part of a model: the nodes and constants of a trace, between `inputs` and `outputs` of `graph`.

    `defaults` are the inputs that keep their initializers.
    """

    graph: Graph
    trace: Trace
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    defaults: frozenset[Value] = frozenset()


def assemble(model: Model, part: Part, registry: Registry) -> Model:
    """Return a model of copies of a part's nodes; it shares the tensors and types of the model.

    Inputs and outputs without a complete type get the one that inference finds in the whole model. Functions
    and imports that the part does not need are left out, and so is training information.
    """
    new = replace(
        model,
        graph=_Assembly(model, part).graph(),
        opsets=dict(model.opsets),
        metadata=model.metadata and dict(model.metadata),
        functions=[],
        training=[],
        devices=list(model.devices),
    )
    new.functions = [clone_function(f) for f in called_functions(model, new.graph.all_nodes())]
    drop_imports(new, [d for d in unused_imports(new) if d not in unused_imports(model)])
    ports = [
        *zip(part.inputs, new.graph.inputs, strict=False),
        *zip(part.outputs, new.graph.outputs, strict=True),
    ]
    complete_types(model, ports, registry)
    return new


def called_functions(model: Model, nodes: Iterable[Node]) -> list[Function]:
    """Return the functions of a model that nodes call, and those that these call, in the model's order."""
    by_key = model.functions_by_key()
    if not by_key:
        return []
    called: set[Function] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        function = by_key.get((canonical_domain(node.domain), node.op, node.overload))
        if function is not None and function not in called:
            called.add(function)
            pending += function.graph.all_nodes()
    return [function for function in model.functions if function in called]


class _Assembly:
    """The graph of one part, while it is built; `_copies` has the copy of each value."""

    def __init__(self, model: Model, part: Part) -> None:
        self._model, self._part = model, part
        self._copies: dict[Value, Value | None] = {}

    def graph(self) -> Graph:
        part, old = self._part, self._part.graph
        graph = Graph(old.name, [self._copied(value) for value in part.inputs])
        graph.doc, graph.metadata = old.doc, old.metadata and dict(old.metadata)
        graph.residue = old.residue
        for value in part.inputs:
            if value in part.defaults and value.constant is not None:
                graph.set_initializer(self._of(value), value.constant)
        for value in self._ordered_constants():
            self._add_constant(graph, value)
        for node in self._ordered_nodes():
            graph.append(self._node(node))
        graph.outputs = [self._of(value) for value in part.outputs]
        graph.annotations = tuple(self._annotations(graph))
        return graph

    def _ordered_constants(self) -> list[Value]:
        """Return the initializers in the order of their graphs, the outermost graph first."""
        graphs = reversed(list(enclosing(self._part.graph)))
        return [v for graph in graphs for v in graph.initializers if v in self._part.trace.constants]

    def _ordered_nodes(self) -> list[Node]:
        graphs = reversed(list(enclosing(self._part.graph)))
        return [n for graph in graphs for n in graph.sorted_nodes() if n in self._part.trace.nodes]

    def _add_constant(self, graph: Graph, value: Value) -> None:
        new, data = self._copied(value), value.constant
        if data is not None:
            graph.set_initializer(new, data)
        if self._model.ir_version < CONSTANTS.since:
            graph.inputs.append(new)

    def _node(self, node: Node) -> Node:
        """Return a copy of a node; where an output is an input of the part, readers read the input."""
        fed = {v: self._copies[v] for v in node.outputs if v is not None and v in self._copies}
        clone = clone_node(node, self._copies)
        for value, port in fed.items():
            computed = self._copies[value]
            if computed is not None:
                computed.name = self._names.fresh(computed.name)
            self._copies[value] = port
        return clone

    @cached_property
    def _names(self) -> FreshNames:
        return FreshNames.beside(enclosing(self._part.graph))

    def _annotations(self, graph: Graph) -> Iterable[Annotation]:
        """Yield the quantization annotations of values of the part, with the initializers that they name."""
        for annotation in self._part.graph.annotations:
            value = self._copies.get(annotation.value)
            if value is None:
                continue
            for _, parameter in annotation.parameters:
                if parameter not in self._copies and parameter.constant is not None:
                    self._add_constant(graph, parameter)
            named = [(key, self._copies.get(parameter)) for key, parameter in annotation.parameters]
            parameters = tuple([(key, one) for key, one in named if one is not None])
            if len(parameters) == len(named):
                yield annotation._replace(value=value, parameters=parameters)

    def _copied(self, value: Value) -> Value:
        """Return a new value with the name, type and documentation of an input or initializer."""
        new = self._copies[value] = copy.copy(value)
        new.metadata = value.metadata and dict(value.metadata)
        return new

    def _of(self, value: Value) -> Value:
        return self._copies.get(value) or value


def complete_types(model: Model, ports: Iterable[tuple[Value, Value | None]], registry: Registry) -> None:
    """Give each second value the type that inference finds for the first one, where its own is incomplete.

    What the model declares of its own inputs and outputs stays.
    """
    declared = {
        v for v in (*model.graph.inputs, *model.graph.outputs) if v is not None and v.type is not None
    }
    incomplete = [
        (old, new)
        for old, new in ports
        if new is not None and old not in declared and not _is_complete(new.type)
    ]
    if not incomplete:
        return
    inference = Inference(model, registry=registry)
    inference.run()
    for old, new in incomplete:
        kind = inference.type_of(old)
        if kind is not None and not (isinstance(kind, TensorType) and not kind.element.number):
            new.type = without_contents(kind)


def _is_complete(kind: Type | None) -> bool:
    if not isinstance(kind, TensorType):
        return kind is not None
    return kind.shape is not None and None not in kind.shape
