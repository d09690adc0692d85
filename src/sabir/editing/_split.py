"""A model in two, which compute the same one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import UnsupportedError, listed_names, quote, run_with_limits
from sabir.editing._assembling import Part, assemble
from sabir.editing._finding import Finder, described, home_of
from sabir.editing._tracing import constant_nodes, trace
from sabir.ir import check_is_model
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from sabir.base import Limits
    from sabir.editing._tracing import Trace
    from sabir.ir import Graph, Model, Value, ValueOrName
    from sabir.schema import Registry


class Halves(NamedTuple):
    """The two models of a split: the second one reads outputs of the first one, under the same names.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { t = Neg (x)  y = Relu (t) }''')
    >>> halves = sabir.split(model, at='t')
    >>> [node.op for node in halves.second.graph]
    ['Relu']
    """

    first: Model
    second: Model


def split(
    model: Model,
    *,
    at: Iterable[ValueOrName] | ValueOrName,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Halves:
    """Return two models that compute, one after the other, what a model computes; they share its tensors.

    `at` are values that nodes of the main graph compute, or their names. The first model computes these, and
    those outputs of the model that its nodes compute. The second one computes the other outputs, from
    values of `at` and from inputs of the model. Constants that both need are in both. Training information
    is left out.

    Raises NotFoundError, a KeyError, for a value that the model does not have; UnsupportedError if the second
    model would need another value that the first one computes, with the path to it, and if a model would have
    nothing to compute; SchemaError where a node reads what nothing defines; LimitError beyond `limits`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { t = Neg (x)  u = Relu (t)  y = Add (u, t) }''')
    >>> first, second = sabir.split(model, at=['t', 'u'])
    >>> [value.name for value in first.graph.outputs], [node.op for node in second.graph]
    (['t', 'u'], ['Add'])
    >>> sabir.split(model, at='u')
    Traceback (most recent call last):
        ...
    sabir.UnsupportedError: the second model needs 't' of the first one: y <- t; list it in `at` too
    """
    check_is_model(model)
    return run_with_limits(limits, lambda: _split(model, at, registry))


def _split(model: Model, at: Iterable[ValueOrName] | ValueOrName, registry: Registry) -> Halves:
    graph = model.graph
    cuts = Finder(model).values(at)
    _require_computed(graph, cuts)
    constants = constant_nodes(model, graph, registry)
    before = trace(graph, cuts, constants=constants)
    computed = {v for node in before.nodes - constants for v in node.outputs if v is not None} | set(cuts)
    outputs = list(dict.fromkeys(v for v in graph.outputs if v is not None))
    first_outputs = [*cuts, *(v for v in outputs if v in computed and v not in cuts)]
    second_outputs = [v for v in outputs if v not in computed]
    if not second_outputs:
        raise UnsupportedError(
            "the first model would compute every output; list values that are further back"
        )
    after = trace(graph, second_outputs, cuts=computed, constants=constants)
    _require_separation(after, cuts)
    read = [value for value in cuts if value in after.cuts]
    return Halves(
        assemble(model, _part(graph, before, (), first_outputs), registry),
        assemble(model, _part(graph, after, read, second_outputs), registry),
    )


def _require_computed(graph: Graph, cuts: Sequence[Value]) -> None:
    if not cuts:
        raise UnsupportedError("`at` lists no value to split the model at")
    for value in cuts:
        if home_of(value) is not graph:
            raise UnsupportedError(
                f"{quote(value.name)} is in {described(home_of(value))}; list values of the main graph"
            )
        if value.node is None:
            raise UnsupportedError(
                f"no node computes {quote(value.name)}, so the model cannot be split there"
            )


def _require_separation(after: Trace, cuts: Collection[Value]) -> None:
    """Raise UnsupportedError where the second model reads values of the first one that are not listed."""
    crossing = [value for value in after.cuts if value not in cuts]
    if crossing:
        first, *others = crossing
        also = f", and {listed_names(v.name for v in others)}" if others else ""
        raise UnsupportedError(
            f"the second model needs {quote(first.name)}{also} of the first one: {after.path(first)}; "
            f"list {'these' if others else 'it'} in `at` too"
        )


def _part(graph: Graph, found: Trace, cuts: Sequence[Value], outputs: Sequence[Value]) -> Part:
    own = [value for value in graph.inputs if value in found.inputs]
    return Part(graph, found, [*cuts, *own], outputs, frozenset(own))
