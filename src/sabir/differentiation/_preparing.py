"""The copy of a model that is differentiated: a recent operator set, and no function on the way."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sabir.base import SchemaError, quote
from sabir.conversion import convert, convert_in_place
from sabir.differentiation._activity import carries_gradient, path
from sabir.ir import TensorType
from sabir.rewriting import InlineFunctions
from sabir.schema import Scope

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from sabir.ir import Function, Graph, Model, Type, Value
    from sabir.rewriting import Rewriter
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
    while called := _called(model, target, sources, registry):
        _inlining(registry, called).run(model)


def inline_all(model: Model, registry: Registry) -> None:
    """Replace the calls of all functions; raises as `inline` does."""
    _inlining(registry).run(model)


def _inlining(registry: Registry, only: Sequence[Function] | None = None) -> InlineFunctions:
    def convert_body(body: Model, opsets: Mapping[str, int]) -> None:
        convert_in_place(body, opsets, registry)

    return InlineFunctions(registry, only=only, convert=convert_body)


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


@contextmanager
def inferred_types(model: Model, rewriter: Rewriter) -> Generator[None]:
    """Let the values of a model have the types that inference knows, for as long as the context lasts."""
    values = [v for root in model.graphs() for graph in root.scopes() for v in graph.defined()]
    declared: list[tuple[Value, Type | None]] = [(v, v.type) for v in values]
    for value in values:
        value.type = rewriter.inference.type_of(value)
    try:
        yield
    finally:
        for value, type_ in declared:
            value.type = type_


def check_type(value: Value) -> None:
    """Raise SchemaError for a value that is no floating-point tensor."""
    if not isinstance(value.type, TensorType) or not carries_gradient(value.type):
        type_ = value.type or "of unknown type"
        raise SchemaError(f"{quote(value.name)} is {type_}; only floating-point tensors have gradients")
