"""Calls of functions, of a model and of documents, replaced by the functions' bodies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sabir.base import UnsupportedError, check_time
from sabir.ir import (
    FreshNames,
    Function,
    Graph,
    Model,
    Node,
    Value,
    bound_opsets,
    canonical_domain,
    clone_node,
    find_opset,
)
from sabir.rewrite import InsertionPoint, replace_outputs
from sabir.schema import Registry, Scope, check_call, check_expansion, implicit_imports

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class InlineFunctions:
    """The pass that replaces every call of a function, and drops the functions of the model."""

    registry: Registry
    name: str = "inline functions"

    def run(self, model: Model) -> bool:
        """Replace the calls; raises as `inline` does, before anything is changed."""
        if not model.functions and not self.registry.operator_sets:
            return False
        scope = Scope.of(model, self.registry, newer_opsets=True)
        bodies = {f.graph for f in model.functions}
        graphs = [g for g in model.graphs() if g not in bodies]
        if not model.functions and all(scope.function_of(n) is None for g in graphs for n in g.all_nodes()):
            return False
        check_expansion(graphs, scope)
        imports = _imports(model, scope, graphs)
        model.opsets.update(imports)
        names = FreshNames(v.name for g in model.graphs() for inner in g.scopes() for v in inner.defined())
        for graph in graphs:
            _expand_all(graph, scope, names)
        model.functions.clear()
        return True


def _imports(model: Model, scope: Scope, graphs: Iterable[Graph]) -> dict[str, int]:
    """Return the imports that a model needs for the bodies of the functions that its graphs call.

    These are functions of the model or of documents.

    Raises SchemaError for an invalid call, UnsupportedError where a body means something else under the
    imports of the model.
    """
    imports: dict[str, int] = {}
    if find_opset(model.opsets, "") is None:  # stated before a function brings another version
        imports.update(("", implied.version) for implied in implicit_imports(model))
    bound = {**bound_opsets(model.opsets), **imports}
    pending, seen = [(graph, scope) for graph in graphs], set[Function]()
    while pending:
        graph, outer = pending.pop()
        for node in graph.all_nodes():
            function = outer.function_of(node)
            if function is None:
                continue
            check_call(function, node)
            replace(outer, depth=0).of_call(function, node)  # raises for an unknown attribute
            if function not in seen:
                seen.add(function)
                pending.append((function.graph, outer.of_body(function)))
                for domain, version in bound_opsets(function.opsets).items():
                    if domain not in bound:
                        bound[domain] = imports[domain] = version
                _check_meaning(function, scope, bound)
    return imports


def _check_meaning(function: Function, scope: Scope, imports: dict[str, int]) -> None:
    """Raise UnsupportedError where an operator of a body has another version under other imports."""
    body = scope.of_body(function)
    for node in function.graph.all_nodes():
        domain = canonical_domain(node.domain)
        needed, present = body.opset(domain), imports.get(domain, scope.opset(domain))
        if needed == present or body.function_of(node) is not None:
            continue
        if _operator(scope, node, needed) != _operator(scope, node, present):
            written = f"{function!r} is written for opset {needed} of {domain or 'ai.onnx'!r}"
            raise UnsupportedError(f"{written}, the model for {present}, and {node.op} changed between them")


def _operator(scope: Scope, node: Node, opset: int | None) -> object:
    """Return what identifies the operator that a node calls in an opset: its version, or its entry's."""
    declaration = scope.registry.declaration(node.domain, node.op, opset)
    if declaration is not None:
        return declaration.entry.since
    return scope.registry.find_version(node.domain, node.op, opset)


def _expand_all(graph: Graph, scope: Scope, names: FreshNames) -> None:
    """Replace the calls of functions in a graph and in those inside it."""
    pending = [(node, scope) for node in graph.all_nodes()]
    while pending:
        check_time()
        node, outer = pending.pop()
        function = outer.function_of(node)
        if function is not None:
            inner = replace(outer, depth=0).of_call(function, node)  # that calls end has been checked
            pending += [(new, inner) for new in _expand(node, function, inner, names)]


def _expand(node: Node, function: Function, inner: Scope, names: FreshNames) -> list[Node]:
    """Put a function's body in the place of a call; return the new nodes, nested ones too."""
    operands = [*node.inputs, *[None] * (len(function.graph.inputs) - len(node.inputs))]
    copies: dict[Value, Value | None] = dict(zip(function.graph.inputs, operands, strict=True))
    point = InsertionPoint.before(node)
    for value, data in function.graph.initializers.items():
        copies[value] = point.graph.add_initializer(names.fresh(value.name), data)
    body = [
        point.insert(clone_node(original, copies, inner.arguments))
        for original in function.graph.sorted_nodes()
    ]
    new = [n for copy in body for n in (copy, *(m for g in copy.graphs for m in g.all_nodes()))]
    for value in (v for n in new for v in n.outputs if v is not None):
        value.name = names.fresh(value.name)
    results = [None if v is None else copies.get(v, v) for v in function.graph.outputs]
    replace_outputs(node, results, body)
    return new
