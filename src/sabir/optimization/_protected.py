"""Values to which something refers that is neither a node nor a graph: they keep their names and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.schema import Callees, Scope, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Graph, Model, Node, Value
    from sabir.schema import Registry


def protected(model: Model, registry: Registry) -> frozenset[Value]:
    """Return the values that training, annotations, device placements and attributes refer to.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> protected(model, sabir.opsets.STANDARD)
    frozenset()
    """
    scope, callees = Scope.of(model, registry, newer_opsets=True), Callees()
    found = set(model.training_reads())
    names: set[str] = set()
    for graph in model.graph.scopes():
        found.update(v for a in graph.annotations for v in (a.value, *(v for _, v in a.parameters)))
        for node in graph:
            found.update(_placed(node))
            callee = callees.find(node, scope) if node.attributes else None
            if isinstance(callee, Version):
                names.update(_names(node, callee))
    return frozenset(found | set(_with_names(model.graph, names)))


def _placed(node: Node) -> Iterator[Value]:
    for device in node.devices or ():
        yield from (s.value for s in device.shardings if s.value is not None)


def _names(node: Node, version: Version) -> Iterator[str]:
    """Yield the names of values that the attributes of a node contain."""
    for declared in version.attributes:
        if declared.names_values and declared.name in node.attributes:
            value: Any = node.attributes[declared.name].value
            yield from value if isinstance(value, tuple) else (value,)


def _with_names(graph: Graph, names: set[str]) -> Iterator[Value]:
    if names:
        yield from (v for inner in graph.scopes() for v in inner.defined() if v.name in names)
