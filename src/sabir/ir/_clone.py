"""Copies of graphs: new nodes and values over the same facts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from sabir.ir._graph import Annotation, Graph, Node, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sabir.ir._attributes import Attribute

Copies: TypeAlias = (
    "dict[Value, Value | None]"  # what stands for each value in the copy; None where it is absent
)


def clone_graph(
    graph: Graph,
    copies: Copies | None = None,
    arguments: Callable[[Mapping[str, Attribute]], Mapping[str, Attribute]] | None = None,
) -> Graph:
    """Return a copy of a graph and of those inside it.

    `copies` says what stands for outer values that it reads (by default themselves), and is filled with the
    copies of its own. `arguments` may change the attributes of each node, as a call of a function does.
    """
    known: Copies = {} if copies is None else copies
    made = Graph(graph.name)
    made.doc, made.metadata, made.residue = graph.doc, graph.metadata and dict(graph.metadata), graph.residue
    for value in graph.inputs:
        made.inputs.append(_value(value, known))
    for value, data in graph.initializers.items():
        made.set_initializer(known.get(value) or _value(value, known), data)
    nodes = [(node, [None if v is None else _value(v, known) for v in node.outputs]) for node in graph]
    for node, outputs in nodes:  # a node may read what one after it computes
        made.append(_node(node, outputs, known, arguments))
    made.outputs.extend(known.get(v, v) if v is not None else None for v in graph.outputs)
    made.clashes = {_of(v, known): name for v, name in graph.clashes.items()}
    made.orphan_value_info = tuple(_value(v, {}) for v in graph.orphan_value_info)
    made.annotations = tuple(
        Annotation(_of(a.value, known), tuple((k, _of(v, known)) for k, v in a.parameters), a.residue)
        for a in graph.annotations
    )
    return made


def clone_node(
    node: Node,
    copies: Copies,
    arguments: Callable[[Mapping[str, Attribute]], Mapping[str, Attribute]] | None = None,
) -> Node:
    """Return a detached copy of a node; its outputs are added to `copies`."""
    outputs = [None if v is None else _value(v, copies) for v in node.outputs]
    return _node(node, outputs, copies, arguments)


def _node(
    node: Node,
    outputs: Iterable[Value | None],
    copies: Copies,
    arguments: Callable[[Mapping[str, Attribute]], Mapping[str, Attribute]] | None,
) -> Node:
    given = node.attributes if arguments is None else arguments(node.attributes)
    made = Node(
        node.op,
        [None if v is None else copies.get(v, v) for v in node.inputs],
        outputs,
        {name: _attribute(a, copies, arguments) for name, a in given.items()},
        domain=node.domain,
        name=node.name,
        overload=node.overload,
    )
    made.doc, made.metadata, made.residue = node.doc, node.metadata and dict(node.metadata), node.residue
    return made


def _attribute(
    attribute: Attribute,
    copies: Copies,
    arguments: Callable[[Mapping[str, Attribute]], Mapping[str, Attribute]] | None,
) -> Attribute:
    graphs = tuple(clone_graph(g, copies, arguments) for g in attribute.graphs)
    if not graphs:
        return attribute
    return replace(attribute, value=graphs[0] if attribute.type == "graph" else graphs)


def _value(value: Value, copies: Copies) -> Value:
    made = copies[value] = Value(value.name, value.type)
    made.doc, made.metadata, made.value_info_index = (
        value.doc,
        value.metadata and dict(value.metadata),
        value.value_info_index,
    )
    made.residue = value.residue
    return made


def _of(value: Value, copies: Copies) -> Value:
    return copies.get(value) or value
