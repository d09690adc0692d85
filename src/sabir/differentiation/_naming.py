"""Calls in functions that name values of their function: inlining gives these values other names.

Before it, such a call gets what it names as further operands; after it, these are taken away again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import SchemaError, UnsupportedError, check_time
from sabir.ir import Node, Value
from sabir.rewriting import InsertionPoint, enclosing
from sabir.schema import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from sabir.ir import Graph, Model
    from sabir.schema import Registry, Version

    Named: TypeAlias = Mapping[str, Value | None]

_COUNT = "named_values"  # an attribute that no operator has: the number of operands that were added


def bind_names(model: Model, registry: Registry, version_of: Callable[[Node, Scope], Version | None]) -> None:
    """Let the calls in functions for which `version_of` returns a version read the values that they name.

    A named input of a function is copied first, so that it is a value of its own in each call. Raises
    UnsupportedError for names that the caller of a function gives, SchemaError for an unknown attribute.
    """
    scope = Scope.of(model, registry, newer_opsets=True)
    if any(_COUNT in n.attributes for graph in model.graphs() for n in graph.all_nodes()):
        raise SchemaError(f"a node has the attribute {_COUNT!r}, which no operator has")
    for function in model.functions:
        body = scope.of_body(function)
        calls = [(n, v) for n in function.graph.all_nodes() if (v := version_of(n, body)) is not None]
        found = {node: _values(node, _names(node, version)) for node, version in calls}
        copies = _copied_inputs(function.graph, {v for values in found.values() for v in values})
        for node, values in found.items():
            node.inputs = [*node.inputs, *(None if v is None else copies.get(v, v) for v in values)]
            node.set(**{_COUNT: len(values)})


def bound_names(
    model: Model, scope: Scope, version_of: Callable[[Node, Scope], Version | None]
) -> dict[Node, Named]:
    """Take away the operands that `bind_names` added, and return the values that each call names.

    A name that no value had is None.
    """
    bound: dict[Node, Named] = {}
    for node in [n for n in model.graph.all_nodes() if _COUNT in n.attributes]:
        version = version_of(node, scope)
        count: Any = node.attributes.pop(_COUNT).value
        values = node.inputs[len(node.inputs) - count :]
        node.inputs = node.inputs[: len(node.inputs) - count]
        if version is not None:
            bound[node] = dict(zip(_names(node, version), values, strict=True))
    return bound


def _names(node: Node, version: Version) -> list[str]:
    """Return the names of values in the attributes of a call."""
    given = [
        node.attributes[a.name] for a in version.attributes if a.names_values and a.name in node.attributes
    ]
    if any(attribute.ref for attribute in given):
        raise UnsupportedError(f"{node!r} takes names of values from an attribute of its function")
    names: list[Any] = []
    for attribute in given:
        value: Any = attribute.value
        names += value if isinstance(value, tuple) else [value]
    return names


def _values(node: Node, names: list[str]) -> list[Value | None]:
    """Return the values that a node names, of the innermost graph that has each."""
    check_time()
    around: dict[str, Value] = {}
    for graph in reversed(list(enclosing(node.graph))):
        around.update((v.name, v) for v in graph.defined())
    return [around.get(name) for name in names]


def _copied_inputs(graph: Graph, named: set[Value | None]) -> dict[Value, Value]:
    """Let the readers of the inputs of a function that are named read copies, and return these."""
    copies: dict[Value, Value] = {}
    for value in [v for v in graph.inputs if v in named]:
        copies[value] = Value(value.name, value.type)
        value.replace_with(copies[value])
        InsertionPoint.start(graph).insert(Node("Identity", [value], [copies[value]]))
    return copies
