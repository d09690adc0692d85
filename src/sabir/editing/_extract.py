"""The part of a model between values, as a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import UnsupportedError, listed_names, quote, run_with_limits
from sabir.editing._assembling import Part, assemble
from sabir.editing._finding import Finder, described, home_of
from sabir.editing._tracing import constant_nodes, trace
from sabir.ir import check_is_model
from sabir.opsets import STANDARD
from sabir.rewriting import enclosing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.base import Limits
    from sabir.editing._tracing import Trace
    from sabir.ir import Graph, Model, Value, ValueOrName
    from sabir.schema import Registry


def extract(
    model: Model,
    *,
    inputs: Iterable[ValueOrName] | ValueOrName | None = None,
    outputs: Iterable[ValueOrName] | ValueOrName | None = None,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return the part of a model that computes `outputs` from `inputs`, as a model that shares its tensors.

    Both are values or their names. `inputs` None means the inputs of the model that `outputs` need, and
    `outputs` None the outputs of the graph that has the `inputs`. Initializers, nodes that read nothing else,
    and functions follow. Inputs and outputs have the types that the model declares or that inference finds.
    An initializer that is listed becomes an input without its data; an input of the model that is not listed
    and has an initializer becomes a constant.

    Values of a branch or of the body of a loop make that graph the main graph. What it captures of the graphs
    around it becomes further inputs, after those listed; constants that it captures follow. Training
    information is left out.

    Raises NotFoundError, a KeyError, for a value that the model does not have; UnsupportedError if the
    outputs depend on an input that is not listed, with the path to it, and for values that no graph has in
    common; SchemaError where a node reads what nothing defines; LimitError beyond `limits`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x, float[N] z) => (float[N] y) { t = Neg (x)  u = Relu (t)  y = Add (u, z) }''')
    >>> part = sabir.extract(model, inputs='t', outputs='u')
    >>> print(part.graph.inputs[0].type, [node.op for node in part.graph])
    float[N] ['Relu']
    >>> sabir.extract(model, inputs='t', outputs='y')
    Traceback (most recent call last):
        ...
    sabir.UnsupportedError: the outputs depend on the input 'z', which is not listed: y <- z; ...
    """
    check_is_model(model)
    return run_with_limits(limits, lambda: _extracted(model, inputs, outputs, registry))


def _extracted(
    model: Model,
    inputs: Iterable[ValueOrName] | ValueOrName | None,
    outputs: Iterable[ValueOrName] | ValueOrName | None,
    registry: Registry,
) -> Model:
    finder = Finder(model)
    cuts = None if inputs is None else finder.values(inputs)
    wanted = None if outputs is None else finder.values(outputs)
    if wanted == []:
        raise UnsupportedError("`outputs` lists no value; None means all outputs")
    graph = _common_graph(model, cuts or [] if wanted is None else wanted)
    if wanted is None:
        wanted = [v for v in graph.outputs if v is not None]
    for value in cuts or ():
        if home_of(value) not in enclosing(graph):
            where = described(home_of(value))
            raise UnsupportedError(
                f"the input {quote(value.name)} is in {where}, and the outputs are outside of it"
            )
    needed = trace(graph, wanted, cuts=set(cuts or ()), constants=constant_nodes(model, graph, registry))
    if cuts is None:
        ports = _needed_inputs(graph, needed)
        part = Part(graph, needed, ports, wanted, frozenset(ports))
    else:
        part = _cut_part(graph, needed, cuts, wanted)
    return assemble(model, part, registry)


def _common_graph(model: Model, values: Sequence[Value]) -> Graph:
    """Return the innermost graph of values, where the graphs around it have all of the others."""
    homes = set(map(home_of, values)) or {model.graph}
    innermost = max(homes, key=lambda home: sum(1 for _ in enclosing(home)))
    around = set(enclosing(innermost))
    for value in values:
        if home_of(value) not in around:
            raise UnsupportedError(
                f"{quote(value.name)} is in {described(home_of(value))}, and other values are in "
                f"{described(innermost)}; a part is cut out of one graph"
            )
    return innermost


def _needed_inputs(graph: Graph, needed: Trace) -> list[Value]:
    """Return the inputs of a graph that a trace reached, in their order, then the captured values."""
    own = [value for value in graph.inputs if value in needed.inputs]
    return [*own, *_captured(graph, needed)]


def _captured(graph: Graph, needed: Trace) -> list[Value]:
    """Return the values of the graphs around a graph that a trace reached, in the order of their graphs."""
    _, *around = enclosing(graph)
    return [v for outer in reversed(around) for v in outer.defined() if v in needed.inputs]


def _cut_part(graph: Graph, needed: Trace, cuts: Sequence[Value], outputs: Sequence[Value]) -> Part:
    """Return the part between listed inputs and outputs; raises UnsupportedError for a path around them."""
    unlisted = [v for v in needed.inputs if v.home is graph and v.constant is None]
    if unlisted:
        raise UnsupportedError(_path_around(needed, unlisted))
    defaults = [v for v in needed.inputs if v.constant is not None]
    for value in defaults:
        del needed.inputs[value]
        needed.constants[value] = None
    kept = frozenset(value for value in cuts if value.is_input)
    return Part(graph, needed, [*cuts, *_captured(graph, needed)], outputs, kept)


def _path_around(needed: Trace, unlisted: Sequence[Value]) -> str:
    first, *others = unlisted
    also = f" (and on {listed_names(v.name for v in others)})" if others else ""
    return (
        f"the outputs depend on the input {quote(first.name)}{also}, which is not listed: "
        f"{needed.path(first)}; list it as an input too, or cut at a value of this path"
    )
