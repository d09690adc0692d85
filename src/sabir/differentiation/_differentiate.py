"""`differentiate`: a model that also computes gradients of one of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import Limits, SchemaError, quote, run_with_limits
from sabir.differentiation._containers import element_of
from sabir.differentiation._operators import write_out
from sabir.differentiation._preparing import (
    check_type,
    inferred_types,
    inline_functions,
    prepared,
    values_named,
)
from sabir.differentiation._pullback import Job, Pullback
from sabir.differentiation._recomputation import recompute, segments_of
from sabir.differentiation._shaped import ShapedDetachedBuilder
from sabir.inference import without_contents
from sabir.ir import check_is_model, name_of, names_of
from sabir.opsets import STANDARD
from sabir.rewriting import InsertionPoint, Rewriter, merge_equal, remove_unread
from sabir.scheduling import calls_in_graph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.ir import Model, Value, ValueOrName
    from sabir.schema import Registry


class Request(NamedTuple):
    """What is asked for: the gradients of `of` with respect to `wrt`, and the names of input and outputs."""

    of: str
    wrt: tuple[str, ...]
    seed: str | None
    names: Mapping[str, str]
    recompute: tuple[str, ...]
    strict: bool


def differentiate(
    model: Model,
    of: ValueOrName,
    wrt: ValueOrName | Iterable[ValueOrName],
    *,
    seed: str | None = None,
    names: Mapping[ValueOrName, str] | None = None,
    recompute: str | Sequence[str] = (),
    strict: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model with the gradients of `of` with respect to `wrt` as further outputs.

    `of` is a floating-point tensor of the main graph, and `wrt` one or several: inputs, initializers, or
    results of nodes, each by its name or as a `Value`. The gradient of a tensor that is no scalar is that of
    the sum of its elements; with `seed`, a new input of that name and of the type of `of` has the weight of
    each element. The output for `w` is named `grad_w`, or as `names` says: `names={"w": "dw"}`; a default
    name that is taken is numbered, `grad_w_1`. It has the type of `w`, and is zero where `of` does not depend
    on `w`.

    The gradients are ordinary nodes, so a result can be differentiated again, and any runtime executes it. A
    model below operator set 18 is converted to it. Functions and operators without a gradient of their own
    are replaced by their bodies where a gradient must pass.

    `recompute` has regular expressions: the results of nodes whose whole names match are not kept for the
    gradients, but computed again. Nodes with the same text in the groups of a pattern are one segment, which
    is computed again at once from what other nodes of the model read, such as the input of a block.

    A function that is constant between jumps, such as a comparison, ArgMax or a Cast to integers, has the
    gradient zero; `strict` refuses a value of `wrt` on which `of` depends through such functions alone.

    Raises NotFoundError for an unknown name and a pattern that no node matches, SchemaError for a value that
    is no floating-point tensor or is of another model, a name that is taken, or an invalid graph;
    UnsupportedError for an operator without a gradient on the way, and where every path from a value of `wrt`
    to `of` ends at an operator that passes no gradient on; ConversionError where the model cannot be
    converted; LimitError where the work would exceed `limits`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x, float w) => (float[N] y) { y = Mul (x, w) }''')
    >>> found = sabir.differentiate(model, of='y', wrt=['w'])
    >>> results = sabir.evaluate(found, {'x': np.float32([1, 2, 3]), 'w': np.float32(5)})
    >>> print(results['grad_w'])
    6.0
    """
    check_is_model(model)
    target, by = name_of(model, "of", of), names_of(model, "wrt", wrt)
    stated = {name_of(model, "names", value): name for value, name in (names or {}).items()}
    patterns = (recompute,) if isinstance(recompute, str) else tuple(recompute)
    request = Request(target, by, seed, stated, patterns, strict)
    return run_with_limits(limits, _differentiate, model, request, registry)


def _differentiate(model: Model, request: Request, registry: Registry) -> Model:
    _check_names(request)
    model = prepared(model, registry)
    if calls_in_graph(model, registry):
        write_out(model, registry, strict=request.strict)
    target, *sources = values_named(model.graph, (request.of, *request.wrt))
    inline_functions(model, target, sources, registry)
    rewriter = Rewriter(model, registry=registry)
    with inferred_types(model, rewriter):
        for value in (target, *sources):
            check_type(value)
        _append(rewriter, target, sources, request)
    return model


def _check_names(request: Request) -> None:
    twice = next((n for i, n in enumerate(request.wrt) if n in request.wrt[:i]), None)
    if twice is not None:
        raise SchemaError(f"`wrt` names {quote(twice)} twice")
    other = next((n for n in request.names if n not in request.wrt), None)
    if other is not None:
        raise SchemaError(f"`names` has a name for the gradient of {quote(other)}, which `wrt` does not name")


def _append(rewriter: Rewriter, target: Value, sources: Sequence[Value], request: Request) -> None:
    graph = rewriter.model.graph
    b = rewriter.builder(graph, ShapedDetachedBuilder)
    if request.seed is not None:
        _take(rewriter, request.seed)
    outputs = [
        _take(rewriter, stated) if (stated := request.names.get(s.name)) else _fresh(rewriter, s)
        for s in sources
    ]
    if request.seed is None:
        one = b.initializer("one", np.ones((), element_of(target).dtype))
        gradient = b.Expand(one, b.sizes(target))
    else:
        gradient = graph.add_input(request.seed, target.type and without_contents(target.type))
    segments = segments_of(graph, request.recompute)
    pullback = Pullback(Job(rewriter), graph, sources, b)
    for source, name, found in zip(sources, outputs, pullback.run([(target, gradient)]), strict=True):
        output = b.Identity(pullback.zeros(source, target, strict=request.strict) if found is None else found)
        output.name, output.type = name, source.type and without_contents(source.type)
        b.output(output)
    remove_unread(b.graph)
    merge_equal(b.graph, rewriter.scope)
    recompute(pullback.job, graph, b.graph, segments, gradient)
    results, b.graph.outputs = list(b.graph.outputs), []
    rewriter.place(b, InsertionPoint.end(graph))
    graph.outputs.extend(results)


def _fresh(rewriter: Rewriter, source: Value) -> str:
    return rewriter.names.fresh(f"grad_{source.name}")


def _take(rewriter: Rewriter, name: str) -> str:
    """Take a name that the caller states; raises SchemaError where a value of the model has it."""
    if rewriter.names.fresh(name) != name:
        raise SchemaError(f"the model has a value named {quote(name)}; choose another name")
    return name
