"""Inlining: a call of a function, or of an operator that has a body, becomes the nodes of its body."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.base import Limits, SchemaError, UnsupportedError, check_time, run_within
from sabir.inference import Inference
from sabir.ir import (
    Builder,
    Function,
    Graph,
    Model,
    Node,
    TensorType,
    Value,
    bound_opsets,
    canonical_domain,
    clone_node,
    find_opset,
)
from sabir.opsets import STANDARD
from sabir.schema import (
    Call,
    Registry,
    Scope,
    Unconvertible,
    Version,
    as_results,
    check_call,
    check_expansion,
    implicit_imports,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


def inline(
    model: Model,
    *,
    operators: bool | Collection[str] = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Replace every call of the model's functions by the function's body, and return the model.

    `operators` asks for the same of operators that have a body: of all (True), or of those named. Raises
    SchemaError for a call that is wrong or calls itself, UnsupportedError where a body is written for another
    operator set version than the model's, LimitError where the result would have more nodes than `limits`
    let it; the model is then as it was. Functions alone are replaced under any opsets.
    """
    run_within(limits, _inline, model, registry, operators=operators)
    return model


def _inline(model: Model, registry: Registry, *, operators: bool | Collection[str]) -> None:
    engine = _Inliner(model, registry, newer_opsets=not operators)
    bodies = {id(f.graph) for f in model.functions}
    graphs = [g for g in model.graphs() if id(g) not in bodies]
    engine.check_size(graphs)
    engine.state_default()
    for graph in graphs:
        engine.expand_functions(graph)
    model.functions.clear()
    if operators:
        engine.expand_operators(None if operators is True else frozenset(operators))


class _Inliner:
    def __init__(self, model: Model, registry: Registry, *, newer_opsets: bool) -> None:
        self._model, self._registry = model, registry
        self._scope = Scope.of(model, registry, newer_opsets=newer_opsets)
        self._numbers: dict[str, int] = {}
        self._taken = {v.name for g in model.graphs() for inner in g.scopes() for v in inner.defined()}

    def check_size(self, graphs: Iterable[Graph]) -> None:
        """Count what inlining makes; raises SchemaError for a function that calls itself, LimitError."""
        check_expansion(graphs, self._scope)

    def state_default(self) -> None:
        """Import the default domain where the model implies it, before a function brings another version."""
        model = self._model
        if model.functions and find_opset(model.opsets, "") is None:
            for _, _, version in tuple(implicit_imports(model)):
                model.opsets[""] = version

    def expand_functions(self, graph: Graph) -> None:
        """Replace the calls of functions in a graph and in those inside it."""
        pending = [(node, self._scope) for node in graph.all_nodes()]
        while pending:
            check_time()
            node, scope = pending.pop()
            callee = _function(node, scope)
            if callee is None:
                continue
            inner = replace(scope, depth=0).inside(callee, node)  # that it ends was made sure of
            pending += [(made, inner) for made in self._expand(node, callee, inner)]

    def _expand(self, node: Node, function: Function, inner: Scope) -> list[Node]:
        """Put a function's body in the place of a call; returns the nodes that were made, nested ones too."""
        check_call(function, node)
        self._agree(function)
        given = [*node.inputs, *[None] * (len(function.graph.inputs) - len(node.inputs))]
        copies: dict[Value, Value | None] = dict(zip(function.graph.inputs, given, strict=True))
        graph, place = _home(node), node
        made: list[Node] = []
        for value, data in function.graph.initializers.items():
            copies[value] = graph.add_initializer(self._fresh(value.name), data)
        for original in function.graph.sorted_nodes():
            copy = clone_node(original, copies, inner.arguments)
            place = graph.insert(copy, after=place)
            made += [copy, *(n for g in copy.graphs for n in g.all_nodes())]
        for value in (v for n in made for v in n.outputs if v is not None):
            value.name = self._fresh(value.name)
        _hand_over(node, [None if v is None else copies.get(v, v) for v in function.graph.outputs])
        return made

    def _fresh(self, name: str) -> str:
        """Return a name that nothing in the model has yet."""
        found = name
        while not found or found in self._taken:
            number = self._numbers[name] = self._numbers.get(name, 0) + 1
            found = f"{name or 'value'}_{number}"
        self._taken.add(found)
        return found

    def _agree(self, function: Function) -> None:
        """Make sure that the body means the same under the model's imports."""
        body = self._scope.within(function)
        for domain, version in bound_opsets(function.opsets).items():
            if find_opset(self._model.opsets, domain) is None:
                self._model.opsets[domain] = version
        for node in function.graph.all_nodes():
            domain = canonical_domain(node.domain)
            wanted, present = body.opset(domain), self._model.opset(domain)
            here = self._registry.find_version(domain, node.op, present)
            if wanted != present and here is not self._registry.find_version(domain, node.op, wanted):
                told = f"{function!r} is written for opset {wanted} of {domain or 'ai.onnx'!r}"
                raise UnsupportedError(f"{told}, the model for {present}, and {node.op} changed between them")

    def expand_operators(self, names: frozenset[str] | None) -> None:
        """Replace the nodes whose operator has a body, until none is left that can be."""
        refused: set[Node] = set()
        found = self._with_bodies(names)
        while found:
            inference = Inference(self._model, registry=self._registry)
            inference.run()
            refused |= {
                node for node, version in found if not self._expand_operator(node, version, inference)
            }
            found = [(n, v) for n, v in self._with_bodies(names) if n not in refused]

    def _with_bodies(self, names: frozenset[str] | None) -> list[tuple[Node, Version]]:
        found: list[tuple[Node, Version]] = []
        for graph in self._model.graphs():
            for node in graph.all_nodes():
                if names is not None and node.op not in names:
                    continue
                opset = self._model.opset(canonical_domain(node.domain))
                version = self._registry.find_version(node.domain, node.op, opset)
                if version is not None and version.find("body") is not None:
                    found.append((node, version))
        return found

    def _expand_operator(self, node: Node, version: Version, inference: Inference) -> bool:
        """Put an operator's body in the place of a node; False where it wants types that are not known."""
        declared = {v: v.type for v in node.inputs if v is not None}
        for value in declared:
            value.type = inference.types.get(value, value.type)
        opsets = bound_opsets(self._model.opsets, self._model.opset())
        b = Builder(graph=Graph(), opsets=opsets, after=inference.visit, registry=self._registry)
        binding = version.binding("body")
        call = Call(tuple(v is not None for v in node.outputs), version.since)
        try:
            results = as_results(binding((b, *node.inputs), binding.arguments(node.attributes), call))
        except Unconvertible:
            for made in reversed(list(b.graph)):
                b.graph.erase(made)
            return False
        finally:
            for value, kind in declared.items():
                value.type = kind
        for value in b.graph.defined():
            value.name = self._fresh(value.name)
        _place(b.graph, node)
        _hand_over(node, results)
        return True


def _place(body: Graph, node: Node) -> None:
    """Move a body's nodes and constants to the place of a node."""
    graph, place = _home(node), node
    for value, data in list(body.initializers.items()):
        body.set_initializer(value, None)
        graph.set_initializer(value, data)
    for made in list(body):
        for value in made.outputs:
            if value is not None and isinstance(value.type, TensorType):
                value.type = value.type.with_known(None)
        body.detach(made)
        place = graph.insert(made, after=place)


def _function(node: Node, scope: Scope) -> Function | None:
    return scope.functions.get((canonical_domain(node.domain), node.op, node.overload))


def _home(node: Node) -> Graph:
    if node.graph is None:
        raise SchemaError(f"{node!r} stands in no graph")
    return node.graph


def _hand_over(node: Node, results: Sequence[Value | None]) -> None:
    """Let the outputs of a call be what its body computes, and erase the call.

    The values themselves stay, with their names and types, and become the outputs of the body's nodes. A
    result that the body only passes through, or gives twice, is copied where the graph itself gives it.
    """
    graph, became = _home(node), dict[Value, Value]()
    for output, result in zip(node.outputs, results, strict=False):
        if output is None:
            continue
        if result is None:
            raise SchemaError(f"the body of {node!r} gives nothing for {output.name!r}")
        source = result.node
        fresh = result not in became and result not in node.inputs and source is not None
        if source is not None and fresh and source.graph is graph:
            became[result] = output
            source.replace_output(result, output)
            continue
        result = became.get(result, result)  # ruff: ignore[redefined-loop-name]  what it has become
        if any(isinstance(use.user, Graph) for use in output.uses):
            here = result.node is not None and result.node.graph is graph
            graph.insert(Node("Identity", [result], [output]), after=result.node if here else node)
        else:
            output.replace_with(result)
    node.outputs = ()
    graph.erase(node)
