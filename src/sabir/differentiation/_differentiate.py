"""Models that also compute gradients."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import Limits, SchemaError, UnsupportedError, quote, run_within
from sabir.differentiation._activity import blockers, carries_gradient
from sabir.differentiation._pullback import Pullback
from sabir.differentiation._shaped import ShapedDetachedBuilder, element_of
from sabir.inference import without_contents
from sabir.ir import TensorType
from sabir.opsets import STANDARD
from sabir.rewrite import InsertionPoint, Rewriter, remove_unread

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from sabir.ir import Graph, Model, Type, Value
    from sabir.schema import Registry

OLDEST_OPSET = 18  # the operator set for which gradients are written


def differentiate(
    model: Model,
    of: str,
    wrt: Sequence[str],
    *,
    seed: str | None = None,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model with the gradients of `of` with respect to `wrt` as further outputs.

    `of` and `wrt` are names of floating-point tensors of the main graph. The gradient of a tensor that is no
    scalar is that of the sum of its elements; with `seed`, a new input of that name and of the type of `of`
    has the weight of each. The output for `x` is named `d_<of>_d_<x>`, and has the type of `x`.

    Raises UnsupportedError for a model below operator set 18, for an operator without a gradient on the way
    from `wrt` to `of`, and for one that stops every path. Raises SchemaError where `of` does not depend on a
    value of `wrt`, NotFoundError for an unknown name, LimitError where the work would exceed `limits`.
    """
    return run_within(limits, _differentiate, model, of, wrt, seed, registry)


def _differentiate(model: Model, of: str, wrt: Sequence[str], seed: str | None, registry: Registry) -> Model:
    opset = model.opset()
    if opset is not None and opset < OLDEST_OPSET:
        raise UnsupportedError(
            f"gradients need operator set {OLDEST_OPSET} or later, and the model imports {opset}"
        )
    model = model.clone()
    rewriter = Rewriter(model, registry=registry)
    target, *sources = _values(model.graph, (of, *wrt))
    with _inferred_types(model, rewriter):
        for value in (target, *sources):
            _check_type(value)
        _append(rewriter, target, sources, seed)
    return model


def _values(graph: Graph, names: Sequence[str]) -> list[Value]:
    """Return values of a graph by their names; raises NotFoundError as `Graph.value`."""
    named: dict[str, Value | None] = {}
    for value in graph.defined():
        named[value.name] = None if value.name in named else value  # None: several have the name
    return [named.get(name) or graph.value(name) for name in names]


def _append(rewriter: Rewriter, target: Value, sources: Sequence[Value], seed: str | None) -> None:
    graph = rewriter.model.graph
    b = rewriter.builder(graph, ShapedDetachedBuilder)
    if seed is None:
        one = b.initializer("one", np.ones((), element_of(target).dtype))
        gradient = b.Expand(one, b.sizes(target))
    else:
        gradient = graph.add_input(rewriter.names.fresh(seed), target.type and without_contents(target.type))
    pullback = Pullback(rewriter, graph, sources, b)
    for source, found in zip(sources, pullback.run([(target, gradient)]), strict=True):
        if found is None:
            raise _blocked(pullback, source, target)
        output = b.output(b.Identity(found), f"d_{target.name}_d_{source.name}")
        output.type = source.type and without_contents(source.type)
    remove_unread(b.graph)
    outputs, b.graph.outputs = list(b.graph.outputs), []
    rewriter.place(b, InsertionPoint.end(graph))
    graph.outputs.extend(outputs)


def _blocked(pullback: Pullback, source: Value, target: Value) -> Exception:
    """Return the error for a value that no gradient reaches."""
    ends = blockers(pullback.graph, source, target, pullback.stopped)
    if ends is None:
        return SchemaError(f"{quote(target.name)} does not depend on {quote(source.name)}")
    names = ", ".join(map(repr, ends))
    return UnsupportedError(
        f"no gradient of {quote(target.name)} reaches {quote(source.name)}: it ends at {names}"
    )


def _check_type(value: Value) -> None:
    if not isinstance(value.type, TensorType) or not carries_gradient(value.type):
        type_ = value.type or "of unknown type"
        raise SchemaError(f"{quote(value.name)} is {type_}; only floating-point tensors have gradients")


@contextmanager
def _inferred_types(model: Model, rewriter: Rewriter) -> Generator[None]:
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
