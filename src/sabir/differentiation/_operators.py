"""Calls of operators that name values of the graph around them, such as Gradient, as ordinary nodes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import (
    Limits,
    NotFoundError,
    SabirWarning,
    SchemaError,
    check_time,
    quote,
    run_with_limits,
)
from sabir.differentiation._activity import defined_by, results
from sabir.differentiation._containers import element_of
from sabir.differentiation._copying import copied
from sabir.differentiation._naming import bind_names, bound_names
from sabir.differentiation._preparing import check_type, inferred_types, inline_all, prepared, values_named
from sabir.differentiation._pullback import Job, Pullback
from sabir.differentiation._shaped import ShapedDetachedBuilder
from sabir.ir import Graph, Node, Value, canonical_domain
from sabir.opsets import STANDARD
from sabir.rewriting import InsertionPoint, Rewriter, enclosing, merge_equal, remove_unread, replace_outputs
from sabir.schema import Call, Scope, as_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.differentiation._naming import Named
    from sabir.ir import Model
    from sabir.schema import Registry, Version


def expand_in_graph(
    model: Model, registry: Registry = STANDARD, limits: Limits | None = None, *, strict: bool = False
) -> Model:
    """Return a copy of a model whose calls that read the graph around them are replaced by ordinary nodes.

    These are the calls of `Gradient`. Names of values stay; a model below operator set 18 is converted to it.
    A value that a derivative does not list as an independent variable or a constant keeps its value in the
    graph, with a SabirWarning if it is an input of the model. `strict` is that of `differentiate`.

    Raises NotFoundError for a name that no value has, SchemaError where a derivative depends on itself,
    UnsupportedError where no gradient passes, ConversionError, LimitError.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>
    ... g (float x) => (float y, float dx) {
    ...     y = Mul (x, x)  dx = ai.onnx.preview.training.Gradient <xs = ["x"], y = "y"> (x) }''')
    >>> [node.op for node in expand_in_graph(model).graph]
    ['Mul', 'Expand', 'Mul', 'Sum', 'Identity']
    """

    def run() -> Model:
        copy = prepared(model, registry)
        write_out(copy, registry, strict=strict)
        return copy

    return run_with_limits(limits, run)


def write_out(model: Model, registry: Registry, *, strict: bool = False) -> None:
    """Replace the calls of a model, which must be `prepared`; raises as `expand_in_graph`."""
    bind_names(model, registry, _version)
    inline_all(model, registry)
    named = bound_names(model, Scope.of(model, registry, newer_opsets=True), _version)
    rewriter = Rewriter(model, registry=registry)
    with inferred_types(model, rewriter):
        expansion = _Expansion(rewriter, named, strict=strict)
        for node in [n for n in model.graph.all_nodes() if _version(n, rewriter.scope) is not None]:
            expansion.expand(node)
    for graph in model.graph.scopes():
        graph.sort()


def _version(node: Node, scope: Scope) -> Version | None:
    """Return the version that a node calls, if it reads the graph around the node."""
    found = scope.registry.find_version(node.domain, node.op, scope.opset(canonical_domain(node.domain)))
    return found if found is not None and found.find("in_graph") is not None else None


class _Expansion:
    """The replacement of the calls of one model; one whose result another one differentiates comes first."""

    def __init__(self, rewriter: Rewriter, named: Mapping[Node, Named], *, strict: bool) -> None:
        self.rewriter, self.job, self.named, self.strict = rewriter, Job(rewriter), named, strict
        self._open: list[Node] = []

    def expand(self, node: Node) -> None:
        """Replace a call, and before it those that it depends on; one that has been replaced is skipped."""
        version = None if node.graph is None else _version(node, self.rewriter.scope)
        if version is None:
            return
        if node in self._open:
            raise SchemaError(f"{node!r} differentiates a value that depends on its own result")
        check_time()
        self._open.append(node)
        binding = version.binding("in_graph")
        binding.signature.check(node.attributes)
        binding.signature.check_arity(node.inputs, len(node.outputs))
        if None in node.inputs:
            raise SchemaError(f"{node!r} leaves out an input")
        call = Call(tuple(v is not None for v in node.outputs), version.since)
        b = self.rewriter.builder(InsertionPoint.before(node).graph, ShapedDetachedBuilder)
        operands, attributes = tuple(node.inputs), binding.arguments(node.attributes)
        found = as_results(binding((_Around(self, node, b), *operands), attributes, call))
        b.graph.outputs = [v for v in found if v is not None]
        remove_unread(b.graph)
        merge_equal(b.graph, self.rewriter.scope)
        b.graph.outputs = []
        constants = list(b.graph.initializers)
        nodes = self.rewriter.place(b, InsertionPoint.before(node))
        replace_outputs(node, found, nodes, constants)
        self.job.count(nodes)
        self._open.pop()

    def expand_inside(self, nodes: Iterable[Node]) -> bool:
        """Replace the calls among nodes and in their subgraphs; return whether there are any."""
        every = [n for node in nodes for n in (node, *(m for g in node.graphs for m in g.all_nodes()))]
        found = [n for n in every if _version(n, self.rewriter.scope) is not None]
        for node in found:
            self.expand(node)
        return bool(found)


class _Around:
    """The graph around one call, as its behaviour `in_graph` sees it; `Surroundings` describes it."""

    def __init__(self, expansion: _Expansion, node: Node, b: ShapedDetachedBuilder) -> None:
        self._expansion, self._node, self._b = expansion, node, b
        self._rewriter = expansion.rewriter

    def derivatives(
        self, of: str, by: Sequence[str], constant: Sequence[str], values: Sequence[Value]
    ) -> tuple[Value | None, ...]:
        """Return the derivatives of the sum of a tensor by others, which are independent variables."""
        names = (*by, *constant)
        if not all(isinstance(name, str) for name in (of, *names)):  # pyright: ignore[reportUnnecessaryIsInstance] - a file may have other bytes
            raise SchemaError(f"{self._node!r} names a value by bytes that are no text")
        if len(set(names)) < len(names):
            raise SchemaError(f"{self._node!r} names a value twice in what it differentiates by")
        if len(values) != len(names) or len(self._node.outputs) > len(by):
            counts = f"{len(values)} inputs and {len(self._node.outputs)} outputs"
            raise SchemaError(
                f"{self._node!r} has {counts}, and {len(by)} of the {len(names)} names are in `xs`"
            )
        graph, (target, *cut) = self._named((of, *names))
        before = _ancestors(graph, target, cut)
        if self._expansion.expand_inside(before):
            before = _ancestors(graph, target, cut)
        self._warn(before, cut)
        if any(given is not variable for given, variable in zip(values, cut, strict=True)):
            graph, target, cut = self._copied(before, target, cut, values)
        for value in (target, *cut[: len(by)]):
            check_type(value)
        return self._gradients(graph, target, cut, len(by))

    def _named(self, names: Sequence[str]) -> tuple[Graph, list[Value]]:
        """Return values by their names, and the innermost graph with the first of them, which has all."""
        known = self._expansion.named.get(self._node)
        if known is not None:  # the function that it was in had them
            values = [known[name] for name in names]
            found = [v for v in values if v is not None]
            if len(found) == len(values) and isinstance(found[0].home, Graph):
                return found[0].home, found
            missing = next((n for n, v in zip(names, values, strict=True) if v is None), names[0])
            raise NotFoundError(f"{self._node!r} names {quote(missing)}, and its function has no such value")
        for graph in enclosing(self._node.graph):
            if any(v.name == names[0] for v in graph.defined()):
                return graph, values_named(graph, names)
        raise NotFoundError(
            f"{self._node!r} names {quote(names[0])}, and no graph around it has such a value"
        )

    def _warn(self, nodes: Iterable[Node], cut: Sequence[Value]) -> None:
        """Warn of inputs of the model that are neither variables nor constants."""
        inputs = {v for n in nodes for v in n.reads() if v.is_input and v.constant is None}
        others = sorted(v.name for v in inputs - {*cut} if v.home is self._rewriter.model.graph)
        if others:
            text = (
                f"{self._node!r} differentiates a value that depends on {', '.join(map(quote, others))}, "
                "which neither `xs` nor `zs` names; it keeps its value"
            )
            warnings.warn(text, SabirWarning, stacklevel=2)

    def _copied(
        self, before: Sequence[Node], target: Value, cut: Sequence[Value], values: Sequence[Value]
    ) -> tuple[Graph, Value, list[Value]]:
        """Compute the target again with other values of the variables, right before the call."""
        point = InsertionPoint.before(self._node)
        copies: dict[Value, Value | None] = {}
        for variable, given in zip(cut, values, strict=True):
            identity = Node("Identity", [given], [Value(self._rewriter.names.fresh(variable.name))])
            copies[variable] = self._insert(point, identity)[0]
        for node in before:
            if any(v in copies for v in node.reads()):
                outputs = self._insert(point, copied(node, self._rewriter.names, dict(copies)))
                copies.update(
                    (v, c) for v, c in zip(node.outputs, outputs, strict=True) if v not in copies and v
                )
        self._expansion.job.count(before)
        return point.graph, copies.get(target) or target, [c for v in cut if (c := copies[v]) is not None]

    def _insert(self, point: InsertionPoint, node: Node) -> list[Value | None]:
        """Place a new node, and infer its types."""
        values = list(defined_by(node))
        for value in values:
            value.type = None
        point.insert(node)
        self._rewriter.inference.visit(node, scope=self._rewriter.scope_of(point.graph))
        for value in values:
            value.type = self._rewriter.inference.type_of(value)
        return list(node.outputs)

    def _gradients(
        self, graph: Graph, target: Value, cut: Sequence[Value], count: int
    ) -> tuple[Value | None, ...]:
        b, outputs = self._b, self._node.outputs
        wanted = [v for v, o in zip(cut[:count], outputs, strict=False) if o is not None]
        one = b.initializer("one", np.ones((), element_of(target).dtype))
        pullback = Pullback(self._expansion.job, graph, wanted, b, cut=frozenset(cut))
        found = pullback.run([(target, b.Expand(one, b.sizes(target)))])
        results = iter([
            b.Identity(pullback.zeros(v, target, strict=self._expansion.strict) if d is None else d)
            for v, d in zip(wanted, found, strict=True)
        ])
        return tuple(None if o is None else next(results) for o in outputs)


def _ancestors(graph: Graph, target: Value, cut: Iterable[Value]) -> list[Node]:
    """Return the nodes of a graph that compute a value from others, in topological order."""
    known = set(cut)
    needed, found = {target} - known, list[Node]()
    for node in reversed(graph.sorted_nodes()):
        if any(v in needed for v in results(node)):
            needed.update(v for v in node.reads() if v not in known)
            found.append(node)
    return found[::-1]
