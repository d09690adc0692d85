"""Copies of graphs, functions and models: new nodes and values over the same tensors and types."""

# A copy takes over what the constructors of nodes and values have checked, so private names cross here.
# pyright: reportPrivateUsage=false
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from sabir.base import without_collector
from sabir.ir._attributes import GRAPH_TYPES, Attribute
from sabir.ir._graph import Annotation, Graph
from sabir.ir._node import Node
from sabir.ir._value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sabir.ir._attributes import Attributes
    from sabir.ir._devices import NodeDevice
    from sabir.ir._model import Function, Model, TrainingInfo

    Arguments: TypeAlias = Callable[[Mapping[str, Attribute]], Mapping[str, Attribute]] | None

Copies: TypeAlias = dict[Value, Value | None]  # the copy of each value; None where it is left out


def clone_graph(graph: Graph, copies: Copies | None = None, arguments: Arguments = None) -> Graph:
    """Return a copy of a graph and of those inside it.

    `copies` has the replacements of outer values that it reads (by default the values themselves); the copies
    of its own values are added. `arguments` may change the attributes of each node, as a call of a function
    does.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> copy = clone_graph(model.graph)
    >>> copy[0] is model.graph[0], copy[0].op
    (False, 'Relu')
    """
    known: Copies = {} if copies is None else copies
    clone = Graph(graph.name)
    clone.doc, clone.metadata, clone.residue = (
        graph.doc,
        graph.metadata and dict(graph.metadata),
        graph.residue,
    )
    for value in graph.inputs:
        clone.inputs.append(_value(value, known))
    for value, data in graph.initializers.items():
        clone.set_initializer(known.get(value) or _value(value, known), data)
    nodes = [(node, _outputs(node, known)) for node in graph]
    for node, outputs in nodes:  # a node may read a result of a later one
        clone.append(_node(node, outputs, known, arguments))
    clone.outputs.extend(known.get(v, v) if v is not None else None for v in graph.outputs)
    clone.clashes = {_of(v, known): name for v, name in graph.clashes.items()}
    clone.orphan_value_info = tuple(_value(v, {}) for v in graph.orphan_value_info)
    clone.output_infos = {i: (_of(v, known), _value(d, {})) for i, (v, d) in graph.output_infos.items()}
    clone.annotations = tuple(
        Annotation(_of(a.value, known), tuple((k, _of(v, known)) for k, v in a.parameters), a.residue)
        for a in graph.annotations
    )
    return clone


def clone_node(node: Node, copies: Copies | None = None, arguments: Arguments = None) -> Node:
    """Return a detached copy of a node; `copies` and `arguments` are as in `clone_graph`."""
    known: Copies = {} if copies is None else copies
    return _node(node, _outputs(node, known), known, arguments)


def clone_function(function: Function) -> Function:
    """Return a copy of a function with its body."""
    graphs = [function.graph, *(g for a in function.attributes.values() if a is not None for g in a.graphs)]
    copies: Copies = {v: _value(v, {}) for graph in graphs for v in _undefined(graph)}
    graph = clone_graph(function.graph, copies)
    defaults = {k: a and _attribute(a, copies, None) for k, a in function.attributes.items()}
    return replace(function, graph=graph, attributes=defaults, opsets=dict(function.opsets))


def clone_training(training: TrainingInfo, copies: Copies | None = None) -> TrainingInfo:
    """Return a copy of one TrainingInfo with its graphs; `copies` are as in `clone_graph`."""
    known: Copies = {} if copies is None else copies
    graphs = (training.initialization, training.algorithm)
    initialization, algorithm = (g and clone_graph(g, known) for g in graphs)
    return replace(
        training,
        initialization=initialization,
        algorithm=algorithm,
        initialization_binding=[(_of(k, known), _of(v, known)) for k, v in training.initialization_binding],
        update_binding=[(_of(k, known), _of(v, known)) for k, v in training.update_binding],
    )


def clone_model(model: Model) -> Model:
    """Return a copy of a model that shares no graph, node or value with it."""
    with without_collector():
        return _cloned(model)


def _cloned(model: Model) -> Model:
    bodies = {function.graph for function in model.functions}
    roots = [graph for graph in model.graphs() if graph not in bodies]
    undefined = [v for graph in roots for v in _undefined(graph)]
    bound = [
        v for t in model.training for pair in (*t.initialization_binding, *t.update_binding) for v in pair
    ]
    undefined += [v for v in bound if v.source is None]
    copies: Copies = {v: _value(v, {}) for v in undefined}
    return replace(
        model,
        graph=clone_graph(model.graph, copies),
        opsets=dict(model.opsets),
        functions=[clone_function(f) for f in model.functions],
        metadata=model.metadata and dict(model.metadata),
        training=[clone_training(t, copies) for t in model.training],
        devices=list(model.devices),
    )


def _undefined(root: Graph) -> Iterator[Value]:
    """Yield the values that a graph and those inside it read, and that nothing defines."""
    for graph in root.scopes():
        annotated = (v for a in graph.annotations for v in (a.value, *(v for _, v in a.parameters)))
        described = (v for v, _ in graph.output_infos.values())
        read = (v for node in graph for v in node._inputs._items)
        for value in (*read, *graph.outputs, *annotated, *described):
            if value is not None and value.source is None:
                yield value


def _node(node: Node, outputs: tuple[Value | None, ...], copies: Copies, arguments: Arguments) -> Node:
    clone = Node.linked(
        node.op,
        [None if v is None else copies.get(v, v) for v in node._inputs._items],
        outputs,
        _attributes(node.attributes, copies, arguments),
        domain=node.domain,
        name=node.name,
        overload=node.overload,
    )
    clone.doc, clone.residue = node.doc, node.residue
    clone.metadata = node.metadata and dict(node.metadata)
    if node.devices:
        clone.devices = tuple(_device(device, copies) for device in node.devices)
    return clone


def _device(device: NodeDevice, copies: Copies) -> NodeDevice:
    shardings = (s._replace(value=s.value and _of(s.value, copies)) for s in device.shardings)
    return device._replace(shardings=tuple(shardings))


def _outputs(node: Node, copies: Copies) -> tuple[Value | None, ...]:
    return tuple([None if v is None else _value(v, copies) for v in node._outputs])


def _attributes(attributes: Attributes, copies: Copies, arguments: Arguments) -> dict[str, Attribute]:
    if arguments is not None:
        changed = arguments(attributes).items()
        return {name: _attribute(Attribute.of(name, a), copies, arguments) for name, a in changed}
    return {name: _attribute(a, copies, None) for name, a in attributes._items.items()}


def _attribute(attribute: Attribute, copies: Copies, arguments: Arguments) -> Attribute:
    if attribute.type not in GRAPH_TYPES:
        return attribute
    graphs = tuple(clone_graph(g, copies, arguments) for g in attribute.graphs)
    if not graphs:
        return attribute
    return replace(attribute, value=graphs[0] if attribute.type == "graph" else graphs)


def _value(value: Value, copies: Copies) -> Value:
    clone = copies[value] = Value(value.name)
    clone._type = value._type
    clone.doc, clone.residue = value.doc, value.residue
    if value.metadata is not None:
        clone.metadata = dict(value.metadata)
    clone.value_info_index = value.value_info_index
    return clone


def _of(value: Value, copies: Copies) -> Value:
    return copies.get(value) or value


def _copied(part: Graph | Node) -> Graph | Node:
    """Return a copy that reads the same values of other graphs; a node is detached."""
    return clone_graph(part) if isinstance(part, Graph) else clone_node(part)


# `copy.copy` must not share what belongs to one graph; set here, as the classes cannot import their clones
setattr(Graph, "__copy__", _copied)  # ruff: ignore[set-attr-with-constant]  no slot of instances
setattr(Node, "__copy__", _copied)  # ruff: ignore[set-attr-with-constant]  as above
