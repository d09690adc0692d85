"""Subgraphs as material: their nodes copied into another graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Attribute, Graph, Node, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def graft(graph: Graph, into: Graph, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """Append copies of a graph's nodes to another graph, reading `inputs` for its own.

    Returns the values that stand for the graph's outputs. What it reads of outer graphs, the copies read too.
    """
    copies = dict(zip(graph.inputs, inputs, strict=True))
    for value, tensor in graph.initializers.items():
        if value not in copies:  # a default gives way to what is given
            into.set_initializer(_value(value, copies), tensor)
    _nodes(graph, into, copies)
    return tuple(copies.get(v, v) for v in graph.outputs if v is not None)


def _nodes(graph: Graph, into: Graph, copies: dict[Value, Value]) -> None:
    for node in graph:
        into.append(_node(node, copies))


def _node(node: Node, copies: dict[Value, Value]) -> Node:
    outputs = [None if v is None else _value(v, copies) for v in node.outputs]
    copy = Node(
        node.op,
        [v and copies.get(v, v) for v in node.inputs],
        outputs,
        _attributes(node.attributes, copies),
        domain=node.domain,
        name=node.name,
        overload=node.overload,
    )
    copy.doc, copy.devices, copy.residue = node.doc, node.devices, node.residue
    copy.metadata = node.metadata and {**node.metadata}
    return copy


def _value(value: Value, copies: dict[Value, Value]) -> Value:
    copy = copies[value] = Value(value.name, value.type)
    copy.doc, copy.metadata = value.doc, value.metadata and {**value.metadata}
    return copy


def _attributes(attributes: Mapping[str, Attribute], copies: dict[Value, Value]) -> dict[str, Attribute]:
    return {name: _attribute(a, copies) if a.graphs else a for name, a in attributes.items()}


def _attribute(attribute: Attribute, copies: dict[Value, Value]) -> Attribute:
    graphs = tuple(_graph(g, copies) for g in attribute.graphs)
    return Attribute(
        attribute.name, attribute.type, graphs[0] if attribute.type == "graph" else graphs, attribute.doc
    )


def _graph(graph: Graph, copies: dict[Value, Value]) -> Graph:
    copy = Graph(graph.name, [_value(v, copies) for v in graph.inputs])
    copy.doc, copy.metadata = graph.doc, graph.metadata and {**graph.metadata}
    for value, tensor in graph.initializers.items():
        copy.set_initializer(copies.get(value) or _value(value, copies), tensor)
    _nodes(graph, copy, copies)
    copy.outputs.extend(v and copies.get(v, v) for v in graph.outputs)
    return copy

