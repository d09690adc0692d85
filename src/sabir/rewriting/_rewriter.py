"""The rewriter of a model: the scopes, names and types of new nodes, and the replacement of a node."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from sabir.base import Location, SchemaError
from sabir.inference import Inference, without_contents
from sabir.ir import FreshNames, Graph, Value, bound_opsets, canonical_domain, clone_graph
from sabir.opsets import STANDARD
from sabir.rewriting._builder import DetachedBuilder
from sabir.rewriting._point import InsertionPoint, graph_of
from sabir.rewriting._replacing import check_replacement, erase_node, replace_outputs_of
from sabir.schema import Call, Callees, Scope, Unconvertible, as_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sabir.ir import Function, Model, Node, Type
    from sabir.schema import Behaviour, Binding, Registry, Version

B = TypeVar("B", bound=DetachedBuilder)


class Rewriter:
    """Rewrites one model. It collects the names in use and infers types when they are first needed.

    New nodes are inferred in the scope of the graph around them, so that types and known contents are at hand
    for later ones. Whoever edits the model without the rewriter calls `forget_types` afterwards.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> rewriter = Rewriter(model)
    >>> nodes = rewriter.replace(model.graph[0], lambda b: b.Abs(model.graph.inputs[0]))
    >>> [node.op for node in model.graph]
    ['Abs']
    """

    def __init__(self, model: Model, *, registry: Registry = STANDARD) -> None:
        self.model, self.registry = model, registry
        self._scopes: dict[tuple[Graph, tuple[tuple[str, int], ...] | None], Scope] = {}
        self._functions = {function.graph: function for function in model.functions}
        self._callees = Callees()
        self._empty: list[Graph] = []  # of earlier builders: each new graph would be garbage of many objects
        self.has_new_types = False
        """Whether a replacement has another type than what it replaced, on which types behind it depend."""

    @cached_property
    def names(self) -> FreshNames:
        """The names in use, and new ones beside them."""
        return FreshNames.beside(self.model.graphs())

    @cached_property
    def scope(self) -> Scope:
        """The scope of the main graph."""
        return Scope.of(self.model, self.registry, newer_opsets=True)

    @cached_property
    def inference(self) -> Inference:
        """The types of the values, those of training graphs too, inferred on first use; raises LimitError."""
        inference = Inference(self.model, registry=self.registry)
        inference.run()
        for index, training in enumerate(self.model.training):
            where = Location().at("training_info", index=index)
            for graph in (training.initialization, training.algorithm):
                if graph is not None:
                    inference.infer_graph(graph, where)
        return inference

    def forget_types(self) -> None:
        """Infer the whole model again before types are used next."""
        for name in ("inference", "scope"):
            self.__dict__.pop(name, None)
        self._scopes.clear()
        self._callees = Callees()

    def scope_of(self, graph: Graph, opsets: Mapping[str, int] | None = None) -> Scope:
        """Return the scope of a graph of the model: the main scope, or that of the function that contains it.

        `opsets` are other imports than those in force there, as a conversion has.
        """
        root = graph
        while root.parent is not None:
            root = graph_of(root.parent)
        function = self._functions.get(root)
        owner = self.model.graph if function is None else root
        key = owner, None if opsets is None else tuple(sorted(opsets.items()))
        found = self._scopes.get(key)
        if found is None:
            scope = self.scope
            found = scope if function is None else scope.of_body(function)
            if opsets is not None:
                found = replace(found, opsets=bound_opsets(opsets, found.default))
            self._scopes[key] = found
        return found

    def callee(self, node: Node) -> Version | Function | SchemaError:
        """Return what a node of the model calls, or the error that its scope raises."""
        return self._callees.find(node, self.scope_of(graph_of(node)))

    def builder(
        self,
        graph: Graph,
        make: Callable[..., B] = DetachedBuilder,
        *,
        opsets: Mapping[str, int] | None = None,
    ) -> B:
        """Return a builder of nodes to be placed in a graph; `make` may be a subclass of DetachedBuilder."""
        scope = self.scope_of(graph, opsets)

        def infer(node: Node) -> None:
            if self.registry.has_domain(canonical_domain(node.domain)) or scope.function_of(node) is not None:
                self.inference.visit(node, scope=scope)  # a domain that is not known has no types

        return make(
            graph=self._empty.pop() if self._empty else Graph(),
            opsets=dict(scope.opsets),
            after=infer,
            names=self.names,
            registry=self.registry,
        )

    def place(self, builder: DetachedBuilder, point: InsertionPoint) -> list[Node]:
        """Move what was built to a place in the model, and return the nodes."""
        return builder.place(point, constants_as_nodes=point.graph in self._functions)

    def replace(
        self,
        node: Node,
        build: Callable[[B], object],
        make: Callable[..., B] = DetachedBuilder,
        *,
        opsets: Mapping[str, int] | None = None,
    ) -> list[Node]:
        """Replace a node by what `build` builds, and return the new nodes.

        `build` gets a builder, and returns the value, or a tuple of them, for the node's outputs. While it
        runs, the operands have the types and contents that inference knows. If it raises, the model is
        unchanged: Unconvertible says that there is no replacement. Raises SchemaError if a result is missing.
        """
        return self.replace_all([node], build, make, opsets=opsets)

    def replace_all(
        self,
        nodes: Sequence[Node],
        build: Callable[[B], object],
        make: Callable[..., B] = DetachedBuilder,
        *,
        opsets: Mapping[str, int] | None = None,
    ) -> list[Node]:
        """Replace several nodes of one graph by what `build` builds for their outputs, as `replace` does.

        The new nodes come before the last one listed. Where a reader of an earlier one's output comes before
        them, the graph must be sorted afterwards.
        """
        *_, last = nodes
        b = self.builder(graph_of(last), make, opsets=opsets)
        try:
            results = _divided(self._built(nodes, lambda: build(b)), nodes)
            for node, found in zip(nodes, results, strict=True):
                check_replacement(node, found)
        except BaseException:
            for node in nodes:
                for inner in node.graphs:
                    inner.parent = node  # a new node may have taken it over
            b.discard()
            self._empty.append(b.graph)
            raise
        constants = list(b.graph.initializers)
        new = self.place(b, InsertionPoint.before(last))
        self._empty.append(b.graph)
        for node, found in zip(nodes, results, strict=True):
            self._keep_types(node, found)
        replace_outputs_of(nodes, results, new, constants)
        _drop_unread(constants)
        return new

    def expand(
        self,
        node: Node,
        version: Version,
        behaviour: Behaviour,
        *,
        opsets: Mapping[str, int] | None = None,
    ) -> list[Node]:
        """Replace a node by what a graph-building behaviour of its operator returns; see `replace`.

        Raises Unconvertible also where the behaviour needs an attribute whose value the call of the
        surrounding function decides, or a newer opset, and SchemaError for an invalid call.
        """
        needed = version.operator.body_opset
        opset = self.scope_of(graph_of(node), opsets).opsets.get("", needed)
        if behaviour == "body" and opset < needed:
            raise Unconvertible(f"the body of {version} is written for opset {needed} and later")
        return self.apply(node, version.binding(behaviour), since=version.since, opsets=opsets)

    def apply(
        self, node: Node, binding: Binding, *, since: int, opsets: Mapping[str, int] | None = None
    ) -> list[Node]:
        """Replace a node by what a bound graph-building behaviour returns for it; raises as `expand` does.

        `since` is the version of the operator that the node calls.
        """
        scope = self.scope_of(graph_of(node))
        if scope.is_open(node):
            raise Unconvertible(f"{node!r} takes an attribute from the call of its function")
        binding.signature.check_arity(node.inputs, len(node.outputs))
        arguments = binding.arguments(scope.arguments(node.attributes))
        call = Call(tuple(v is not None for v in node.outputs), since)
        operands = tuple(node.inputs)
        return self.replace(node, lambda b: binding((b, *operands), arguments, call), opsets=opsets)

    def name_output(self, node: Node, index: int) -> Value:
        """Return the output number `index` of a node; one that is left out is named, so that it is computed.

        Raises what inference raises where the operator has no such output; the node is then as before.
        """
        (output,) = self.name_outputs(node, (index,))
        return output

    def name_outputs(self, node: Node, indices: Sequence[int]) -> tuple[Value, ...]:
        """Return several outputs of a node, as `name_output` does; the node is inferred once."""
        before = node.outputs
        outputs = [*before, *[None] * (max(indices) + 1 - len(before))]
        missing = [i for i in indices if outputs[i] is None]
        for index in missing:
            outputs[index] = Value(self.names.fresh(f"{node.op.lower()}_out"))
        if missing:
            node.outputs = outputs
            try:
                self.inference.visit(node, scope=self.scope_of(graph_of(node)))
            except BaseException:
                node.outputs = before
                raise
        found = tuple(v for i in indices if (v := outputs[i]) is not None)
        for index in missing:
            output = outputs[index]
            if output is not None:
                output.type = output.type and without_contents(output.type)
        return found

    def clone(self, graph: Graph, copies: dict[Value, Value | None] | None = None) -> Graph:
        """Return a copy of a graph whose values have fresh names and the same types.

        `copies` has replacements for captured values, and is filled with those of the graph's own.
        """
        known = {} if copies is None else copies
        copy = clone_graph(graph, known)
        types = self.inference.types
        for original in [v for inner in graph.scopes() for v in inner.defined()]:
            value = known[original]
            if value is None:
                continue
            value.name = self.names.fresh(value.name)
            kind = self.inference.type_of(original)
            if kind is not None:
                types[value] = kind
        return copy

    def _built(self, nodes: Iterable[Node], build: Callable[[], object]) -> tuple[Any, ...]:
        """Return what `build` returns; the operands of the nodes have the types that inference knows."""
        declared: dict[Value, Type | None] = {
            v: v.type for node in nodes for v in node.inputs if v is not None
        }
        type_of = self.inference.type_of
        for value in declared:
            value.type = type_of(value)
        try:
            return as_results(build())
        finally:
            for value, kind in declared.items():
                value.type = kind

    def _keep_types(self, node: Node, results: tuple[Any, ...]) -> None:
        """Let outputs that inference knew nothing about have the types of the results."""
        types = self.inference.types
        for output, result in zip(node.outputs, results, strict=False):
            if output is None or types.get(output) == types.get(result):
                continue
            self.has_new_types = True
            if output not in types:
                types[output] = types[result]


def _divided(results: tuple[Any, ...], nodes: Sequence[Node]) -> list[tuple[Any, ...]]:
    """Return the results for each of some nodes: one for each of its outputs, as far as there are any."""
    found: list[tuple[Any, ...]] = []
    for node in nodes:
        count = len(node.outputs)
        found.append((*results[:count], *[None] * (count - len(results))))
        results = results[count:]
    return found


def _drop_unread(constants: Iterable[Value]) -> None:
    """Remove the new constants that no new node reads: a body states what it may not need for each call."""
    for value in constants:
        if next(iter(value.uses), None) is not None:
            continue
        if value.node is not None:
            erase_node(value.node)
        elif isinstance(value.source, Graph):
            value.source.set_initializer(value, None)
