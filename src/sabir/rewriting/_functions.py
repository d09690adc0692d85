"""Calls of functions, of a model and of documents, replaced by the functions' bodies."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sabir.base import ConversionError, UnsupportedError, check_time
from sabir.inference import Inference
from sabir.ir import (
    FreshNames,
    Function,
    Graph,
    Model,
    Node,
    Value,
    bound_opsets,
    canonical_domain,
    clone_graph,
    clone_node,
    drop_imports,
    find_opset,
    unused_imports,
)
from sabir.rewriting._body_dims import BodyDimensions, paired, replace_dims, replace_dims_inside
from sabir.rewriting._point import InsertionPoint
from sabir.rewriting._replacing import release, replace_outputs
from sabir.schema import Registry, Scope, check_call, check_expansion, implicit_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from sabir.ir import Attribute, Dim, Type

    Arguments = Callable[[Mapping[str, Attribute]], Mapping[str, Attribute]]


class Convert(Protocol):
    """Converts a model, in place, to these versions of operator sets.

    >>> def never(model, opsets):
    ...     raise sabir.UnsupportedError('no conversion')
    >>> pass_: Convert = never
    """

    def __call__(self, model: Model, opsets: Mapping[str, int], /) -> None:
        """Convert a model."""
        ...


class InlineFunctions(NamedTuple):
    """The pass that replaces every call of a function, and drops functions and imports that nothing calls.

    `only` restricts it to some functions; a function of the model that calls one of them is replaced too.
    A dimension variable of a body is another one in each call, or the dimension of the operand that decides
    it; `dimensions` chooses them, by default with names that no graph of the model has.
    `convert` converts a body that is written for other operator sets than the model, where an operator
    changed between them; without it such a body raises UnsupportedError. `origins` is filled with the node of
    the function that each new node is a copy of.

    >>> b = sabir.Builder(21)
    >>> twice = b.function(lambda g, x: x + x, name='twice')
    >>> y = b.output(twice(b.input('x', 'float', ['N'])), 'y')
    >>> model = b.model()
    >>> InlineFunctions(sabir.opsets.STANDARD).run(model), [node.op for node in model.graph]
    (True, ['Add'])
    """

    registry: Registry
    only: Collection[Function] | None = None
    convert: Convert | None = None
    origins: dict[Node, Node] | None = None
    dimensions: BodyDimensions | None = None
    name: str = "inline functions"

    def run(self, model: Model) -> bool:
        """Replace the calls; raises SchemaError and LimitError before anything is changed."""
        scope = Scope.of(model, self.registry, newer_opsets=True)
        if self.only is None:
            if not model.functions and not _calls_documents(model, scope):
                return False
            chosen = model.functions
        else:
            chosen = _with_callers(model, self.only, scope)
            if not chosen:
                return False
        unused = unused_imports(model)
        changed = _Inlining(model, chosen, self).run()
        drop_imports(model, [domain for domain in unused_imports(model) if domain not in unused])
        return changed


def _calls_documents(model: Model, scope: Scope) -> bool:
    """Return whether a model without functions of its own calls functions of documents."""
    if not scope.registry.operator_sets:
        return False
    return any(scope.function_of(node) is not None for g in model.graphs() for node in g.all_nodes())


def _with_callers(model: Model, functions: Collection[Function], scope: Scope) -> list[Function]:
    """Return functions with all those of the model that call one of them."""
    chosen, size = set(functions), -1
    while len(chosen) != size:
        size = len(chosen)
        chosen.update(
            f for f in model.functions if any(scope.function_of(n) in chosen for n in f.graph.all_nodes())
        )
    return list(chosen)


class _Inlining:
    """One inlining of functions of a model."""

    def __init__(self, model: Model, functions: Sequence[Function], job: InlineFunctions) -> None:
        self._model, self._functions, self._job = model, functions, job
        self._scope = Scope.of(model, job.registry, newer_opsets=True)
        self._chosen_functions = frozenset(functions)
        self._dimensions = job.dimensions or BodyDimensions(_others(model, functions))
        self._differing: set[Function] = set()  # whose bodies mean something else in the model
        self._names = FreshNames(
            v.name for g in model.graphs() for inner in g.scopes() for v in inner.defined()
        )

    @cached_property
    def _inference(self) -> Inference:
        """The types of the model as it was; values keep theirs."""
        inference = Inference(self._model, registry=self._job.registry)
        inference.run()
        return inference

    def run(self, *, rehearse: bool = True) -> bool:
        """Replace the calls, and drop the functions."""
        model = self._model
        graphs = _others(model, model.functions)
        check_expansion(graphs, self._scope)
        imports = self._imports(graphs)
        if self._differing and rehearse:  # a body that cannot be converted must leave the model as it is
            copy = model.clone()
            copies = dict(zip(model.functions, copy.functions, strict=True))
            chosen = [copies.get(f, f) for f in self._functions]
            _Inlining(copy, chosen, self._job._replace(origins=None, dimensions=None)).run(rehearse=False)
        if self._differing:
            _ = self._inference
        model.opsets.update(imports)
        for graph in graphs:
            self._expand_all(graph)
        dropped = set(self._functions)
        model.functions[:] = [f for f in model.functions if f not in dropped]
        return True

    def _chosen(self, node: Node, scope: Scope) -> Function | None:
        """Return the function that a node calls, where its calls are to be replaced."""
        function = scope.function_of(node)
        if function is None or (self._job.only is not None and function not in self._chosen_functions):
            return None
        return function

    def _imports(self, graphs: Iterable[Graph]) -> dict[str, int]:
        """Return the imports that the model needs for the bodies of the functions that its graphs call.

        Raises SchemaError for an invalid call, UnsupportedError where a body means something else under the
        imports of the model and cannot be converted.
        """
        model, scope = self._model, self._scope
        imports: dict[str, int] = {}
        if find_opset(model.opsets, "") is None:  # stated before a function brings another version
            imports.update(("", implied.version) for implied in implicit_imports(model))
        bound = {**bound_opsets(model.opsets), **imports}
        pending, seen = [(graph, scope) for graph in graphs], set[Function]()
        while pending:
            graph, outer = pending.pop()
            for node in graph.all_nodes():
                function = self._chosen(node, outer)
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
                    self._compare_meaning(function, bound)
        return imports

    def _compare_meaning(self, function: Function, imports: dict[str, int]) -> None:
        """Find out whether an operator of a body has another version under the imports of the model."""
        body = self._scope.of_body(function)
        for node in function.graph.all_nodes():
            domain = canonical_domain(node.domain)
            needed, present = body.opset(domain), imports.get(domain, self._scope.opset(domain))
            if needed == present or body.function_of(node) is not None:
                continue
            if _operator(self._scope, node, needed) == _operator(self._scope, node, present):
                continue
            if self._job.convert is None:
                written = f"{function!r} is written for opset {needed} of {domain or 'ai.onnx'!r}"
                raise UnsupportedError(
                    f"{written}, the model for {present}, and {node.op} changed between them"
                )
            self._differing.add(function)
            return

    def _expand_all(self, graph: Graph) -> None:
        """Replace the calls in a graph and in those inside it."""
        pending = [(node, self._scope) for node in graph.all_nodes()]
        while pending:
            check_time()
            node, outer = pending.pop()
            function = self._chosen(node, outer)
            if function is None:
                continue
            inner = replace(outer, depth=0).of_call(function, node)  # that calls end has been checked
            if function in self._differing and self._job.convert is not None:
                pending += [
                    (new, self._scope) for new in self._converted(node, function, inner, self._job.convert)
                ]
            else:
                operands = [None if v is None else v.type for v in node.inputs]
                sizes = self._dimensions.of_call(function.graph, operands)
                new_nodes = self._splice(node, function.graph, inner.arguments, sizes)
                pending += [(new, inner) for new in new_nodes]

    def _splice(
        self, node: Node, body: Graph, arguments: Arguments, sizes: Mapping[str, Dim] | None = None
    ) -> list[Node]:
        """Put copies of a body's nodes in the place of a call; return the new nodes, nested ones too."""
        new = splice(node, body, self._names, arguments, sizes)
        origins = self._job.origins
        if origins is not None:
            for copy, original in zip(new, body.sorted_nodes(), strict=True):
                origins.update((inner, origins.get(known, known)) for inner, known in paired(copy, original))
        return [n for copy in new for n in (copy, *(m for g in copy.graphs for m in g.all_nodes()))]

    def _converted(self, node: Node, function: Function, inner: Scope, convert: Convert) -> list[Node]:
        """Put a body in the place of a call that is converted, for this call, to the model's imports."""
        types = self._inference.types_of(node)
        body = Model(
            _specialized(function, inner, node, types, self._dimensions),
            dict(inner.opsets),
            ir_version=self._model.ir_version,
            functions=[f for f in self._model.functions if f is not function],
        )
        InlineFunctions(self._job.registry, convert=convert, dimensions=self._dimensions).run(body)
        known = {d: v for d, v in bound_opsets(self._model.opsets).items() if inner.registry.has_domain(d)}
        try:
            convert(body, {d: known[d] for d in inner.opsets if d in known})
        except ConversionError as error:
            raise error.located(f"{function!r}, as {node!r} calls it") from error
        for domain, version in body.opsets.items():
            self._model.opsets.setdefault(domain, version)
        new = self._splice(node, body.graph, inner.arguments)
        release(body.graph)
        return new


def _operator(scope: Scope, node: Node, opset: int | None) -> object:
    """Return what identifies the operator that a node calls in an opset: its version, or its entry's."""
    found = scope.registry.in_force(node.domain, node.op, opset)
    return None if found is None else (type(found), found.since)


def _others(model: Model, functions: Collection[Function]) -> list[Graph]:
    """Return the root graphs of a model that are not the bodies of these functions."""
    bodies = {function.graph for function in functions}
    return [graph for graph in model.graphs() if graph not in bodies]


def splice(
    node: Node, body: Graph, names: FreshNames, arguments: Arguments | None = None,
    sizes: Mapping[str, Dim] | None = None,
) -> list[Node]:  # fmt: skip
    """Put copies of a graph's nodes in the place of a call of it, and return them.

    The inputs of the graph become the operands of the node, its outputs those of the node, whose values stay
    as `replace_outputs` says. `names` names the other new values, `arguments` changes the attributes of each
    node, as a call of a function does, and `sizes` replace dimension variables of the body.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> body = sabir.syntax.parse_graph('g (float[N] a) => (b) { t = Neg (a)  b = Abs (t) }')
    >>> nodes = splice(model.graph[0], body, sabir.ir.FreshNames(['x', 'y']))
    >>> [node.op for node in model.graph]
    ['Neg', 'Abs']
    """
    operands = [*node.inputs, *[None] * (len(body.inputs) - len(node.inputs))]
    copies: dict[Value, Value | None] = dict(zip(body.inputs, operands, strict=True))
    point = InsertionPoint.before(node)
    for value, data in body.initializers.items():
        if value not in copies:
            copies[value] = point.graph.add_initializer(names.fresh(value.name), data)
    originals = body.sorted_nodes()
    new = [point.insert(clone_node(original, copies, arguments)) for original in originals]
    for copy, original in zip(new, originals, strict=True) if sizes else ():
        replace_dims_inside(copy, original, sizes or {})
    nested = [n for copy in new for n in (copy, *(m for g in copy.graphs for m in g.all_nodes()))]
    for value in (v for n in nested for v in n.outputs if v is not None):
        value.name = names.fresh(value.name)
    replace_outputs(node, [None if v is None else copies.get(v, v) for v in body.outputs], new)
    return new


def _specialized(
    function: Function, inner: Scope, node: Node, types: Sequence[Type | None], dimensions: BodyDimensions
) -> Graph:
    """Return a copy of a function's body for one call: with its attributes, and the types of its operands.

    References to graphs stay: these are written for the operator sets of the caller, and not converted.
    """
    given = {name for name, attribute in (inner.bindings or {}).items() if attribute.graphs}

    def resolved(attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        kept = {name: a for name, a in attributes.items() if a.ref in given}
        return {**inner.arguments({n: a for n, a in attributes.items() if n not in kept}), **kept}

    graph = clone_graph(function.graph, None, resolved)
    replace_dims(graph, dimensions.of_call(function.graph, types))
    for place, value in enumerate(list(graph.inputs)):
        if place < len(node.inputs) and node.inputs[place] is not None:
            value.type = types[place] or value.type
            continue
        for use in value.uses:  # the call leaves it out
            (use.user.outputs if isinstance(use.user, Graph) else use.user.inputs)[use.slot] = None
    return graph
