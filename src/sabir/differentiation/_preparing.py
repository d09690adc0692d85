"""The copy of a model that is differentiated: a recent operator set, and no function on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.conversion import convert, convert_in_place
from sabir.differentiation._activity import path
from sabir.rewrite import InlineFunctions
from sabir.schema import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Function, Graph, Model, Value
    from sabir.schema import Registry

OLDEST_OPSET = 18  # the operator set for which gradients are written


def prepared(model: Model, registry: Registry) -> Model:
    """Return a copy of a model in the oldest operator set that gradients are written for, or in a newer one.

    Raises ConversionError with the nodes that cannot be converted.
    """
    opset = Scope.of(model, registry, newer_opsets=True).opset("")
    if opset is not None and opset < OLDEST_OPSET:
        return convert(model, OLDEST_OPSET, registry=registry)
    return model.clone()


def inline_functions(model: Model, target: Value, sources: Sequence[Value], registry: Registry) -> None:
    """Replace the calls of functions on the way from `sources` to `target`; raises as `inline` does.

    A function of which one call is on the way is replaced everywhere.
    """

    def convert_body(body: Model, opsets: Mapping[str, int]) -> None:
        convert_in_place(body, opsets, registry)

    while called := _called(model, target, sources, registry):
        InlineFunctions(registry, only=called, convert=convert_body).run(model)


def _called(model: Model, target: Value, sources: Sequence[Value], registry: Registry) -> list[Function]:
    """Return the functions that nodes on the way call, those in their subgraphs too."""
    scope = Scope.of(model, registry, newer_opsets=True)
    if not scope.functions and not registry.operator_sets:
        return []
    nodes = path(model.graph, sources, target)
    inner = [n for node in nodes for graph in node.graphs for n in graph.all_nodes()]
    found = (scope.function_of(node) for node in (*nodes, *inner))
    return list(dict.fromkeys(f for f in found if f is not None))


def values_named(graph: Graph, names: Sequence[str]) -> list[Value]:
    """Return values of a graph by their names; raises NotFoundError as `Graph.value`."""
    named: dict[str, Value | None] = {}
    for value in graph.defined():
        named[value.name] = None if value.name in named else value  # None: several have the name
    return [named.get(name) or graph.value(name) for name in names]
