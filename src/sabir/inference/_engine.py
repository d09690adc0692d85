"""The inference engine: each node's behaviour, applied to types in graph order. It names no operator.

The declared type of a computed value is a claim, which is kept and merged with the inferred type. Where the
two contradict each other, that is an error; where the claim is true for some sizes only, a warning.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import (
    ACCIDENTS,
    InferenceError,
    LimitError,
    Limits,
    Location,
    SabirError,
    SchemaError,
    check_depth,
    check_nodes,
    check_time,
    run_with_limits,
)
from sabir.inference._calls import infer_call
from sabir.inference._causes import CallSite, Cause, cause_of
from sabir.inference._claims import claim_diagnostic, condition_diagnostic, symbols_of_inputs
from sabir.inference._contents import Constants, tensor_type_of
from sabir.inference._declared import Declarations, retype_leftovers
from sabir.inference._diagnostics import Diagnostic, Reporter
from sabir.inference._functions import FunctionTypes
from sabir.inference._merge import merge, without_negatives
from sabir.inference._operands import misdeclared
from sabir.inference._orders import Orders
from sabir.inference._places import at_node, at_result, is_output
from sabir.inference._subgraphs import SubgraphMemo, values_of
from sabir.ir import Function, Graph, Model, Node, TensorType, Type, Value, WireTensor
from sabir.opsets import STANDARD
from sabir.schema import (
    Callees,
    Registry,
    Scope,
    Version,
    check_call,
    function_label,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sabir.schema import Condition

_CALL = 32  # nodes that are inferred in the time that a call takes without its body


class _Memo(NamedTuple):
    """A remembered call, with the attributes that its key names by id, so that they stay alive."""

    results: tuple[Type | None, ...]
    attributes: tuple[object, ...]
    conditions: Sequence[Condition] = ()


class Inference:
    """Types of a model's values: `types` has those that are known, `diagnostics` the problems found.

    `run` infers the main graph with all that it calls, `infer_graph` another root graph, `visit` one more
    node. Every type in `types` is interned, so that equal types are one object.

    With `fresh` the declared type of a computed value is used only if none can be inferred.
    With `strict` the first error is raised.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> inference = Inference(model)
    >>> inference.run()
    >>> print(inference.types[model.graph.outputs[0]])
    float[N]
    """

    def __init__(
        self,
        model: Model,
        *,
        registry: Registry = STANDARD,
        strict: bool = False,
        fresh: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.model, self.registry, self._limits = model, registry, limits
        self.scope = Scope.of(model, registry, newer_opsets=True)
        self.types: dict[Value, Type] = {}
        self._reporter = Reporter(strict=strict)
        self.diagnostics: list[Diagnostic] = self._reporter.diagnostics
        self._constants = Constants(model)
        self._interned: dict[Type, Type] = {}
        self._memo: dict[tuple[object, ...], _Memo] = {}
        self._calls: dict[tuple[object, ...], _Memo] = {}  # of functions
        self._declarations = Declarations(self._interned, fresh=fresh)
        self._declared = self._declarations.of
        self._sizes: dict[str, str] = {}  # the dimension variables of the model's inputs
        self._callee = Callees().of
        self._inside = FunctionTypes()
        self._applied = SubgraphMemo()
        self._orders = Orders()
        self._depth = 0  # in subgraphs
        self._inner = 0  # nodes inferred outside the main graph, each time that they were
        self._calling: list[Function] = []  # whose bodies are inferred now; their values differ by call
        self._absent: set[Value] = set()  # their inputs that the calls leave out

    def run(self) -> None:
        """Infer the main graph, and the graphs inside it as its nodes call them; raises LimitError."""
        run_with_limits(self._limits, self._run, self.model.graph)

    def _run(self, graph: Graph) -> None:
        self._sizes = symbols_of_inputs(graph)
        self._reporter.newer_opsets(self.scope, Location())
        self._root(graph, self.scope, Location().at("graph"), self._constants.overridable(graph.inputs))

    def infer_graph(
        self, graph: Graph, where: Location, *, scope: Scope | None = None
    ) -> tuple[Type | None, ...]:
        """Infer one more root graph, such as a training step, and return the types of its outputs.

        `where` is its location in diagnostics, `scope` that of its nodes, by default the main graph's. It may
        read values that were inferred before. Raises LimitError.
        """
        return run_with_limits(self._limits, self._root, graph, scope or self.scope, where, graph.inputs)

    def _root(
        self, graph: Graph, scope: Scope, where: Location, overridable: Collection[Value]
    ) -> tuple[Type | None, ...]:
        for value in graph.inputs:
            declared = self._declared(value)
            if declared is not None:
                self._set(value, declared)
        self._initializers(graph, where, overridable)
        return self._graph(graph, scope, where)

    def visit(self, node: Node, *, scope: Scope | None = None, where: Location | None = None) -> None:
        """Infer one more node, or again one whose subgraphs were edited, after a run.

        An output without a type gets the inferred one, with its contents. Raises what inference raises at
        the node. `scope` is that of the graph around the node, by default the main graph's.
        """
        for graph in node.graphs:
            self.forget(graph)
        for value in node.reads():
            if value not in self.types:
                self._adopt(value)
        results = self._node(node, scope or self.scope, where or Location(), 0)
        for value, kind in zip(node.outputs, results, strict=False):
            if value is not None and kind is not None:
                self.types[value] = kind
                value.type = value.type or kind

    def forget(self, graph: Graph) -> None:
        """Drop what is remembered about a graph that was edited, and about those inside it."""
        self._calls.clear()  # it may belong to a function, or to one that another function calls
        for inner in graph.scopes():
            self._orders.forget(inner)
            self._applied.forget(inner)

    def type_of(self, value: Value) -> Type | None:
        """Return the type of a value: inferred, in a function as far as all calls agree, else declared."""
        return self.types.get(value) or self._inside.get(value) or value.type

    def types_of(self, node: Node) -> list[Type | None]:
        """Return the types of a node's operands, as `type_of` does; None for one that is left out."""
        return [None if v is None else self.type_of(v) for v in node.inputs]

    def annotate(self) -> None:
        """Write the inferred types into the values."""
        self._declarations.write({**dict(self._inside.known()), **self.types})
        if self._declarations.fresh:
            retype_leftovers(self.model)

    # graphs

    def _graph(self, graph: Graph, scope: Scope, where: Location) -> tuple[Type | None, ...]:
        self._count(graph)
        report = self._reporter.error
        for place, node in self._orders.placed(graph, lambda error: report(error, where, Cause.CYCLE)):
            check_time()
            try:
                results = self._node(node, scope, where, place)
            except LimitError:
                raise
            except SabirError as error:
                if self._reporter.has_raised(error):
                    raise
                cause = cause_of(error, CallSite(node, scope, self._callee))
                report(error, at_node(where, place, node), cause)
                results = (None,) * len(node.outputs)
            else:
                if not all([type(r) is TensorType and r.element.number for r in results]):  # ruff: ignore[unnecessary-comprehension-in-call]  half the time
                    self._check_declared(node, results, scope, at_node(where, place, node))
            for value, kind in zip(node.outputs, results, strict=False):
                if value is not None:
                    self._define(value, kind, where, place, node)
        return tuple(self._output(v, where, i) for i, v in enumerate(graph.outputs))

    def _count(self, graph: Graph) -> None:
        """Count nodes of functions and subgraphs, which a small file can have inferred very many times."""
        if graph is not self.model.graph:
            self._inner += _CALL + len(graph)
            check_nodes(self._inner)

    def _check_declared(
        self, node: Node, results: Sequence[Type | None], scope: Scope, where: Location
    ) -> None:
        """Report an output whose declared type its operator cannot compute, where none was inferred."""
        callee = self._callee(node, scope)
        if isinstance(callee, Version):
            inputs = [v and self.types.get(v) for v in node.inputs]
            error = misdeclared(callee, inputs, results, [v and self._declared(v) for v in node.outputs])
            if error is not None:
                self._reporter.error(error, where, cause_of(error))

    def _define(self, value: Value, kind: Type | None, where: Location, place: int, node: Node) -> None:
        declared = self._declared(value, always=kind is None)
        if kind is None:
            if declared is not None:
                self._set(value, declared)
            return
        if declared is None or declared is kind or self._calling:
            self.types[value] = kind
            return
        try:
            merged = self._declarations.merged(declared, kind, of_output=is_output(value))
        except InferenceError as error:
            at = at_result(where, place, node, value)
            self._reporter.error(error, at, cause_of(error))
            self._set(value, declared)
            return
        self.types[value] = merged.whole
        if merged.claim is not None:
            at = at_result(where, place, node, value)
            self._reporter.add(claim_diagnostic(value, declared, merged.claim, self._sizes, at))

    def _output(self, value: Value | None, where: Location, place: int) -> Type | None:
        if value is None:
            return None
        found = self.types.get(value)
        if found is None and value.source is None:
            at = where.at("output", index=place, name=value.name)
            self._reporter.error(SchemaError("nothing defines this output"), at, Cause.UNDEFINED_VALUE)
        return found or self._declared(value)

    def _initializers(self, graph: Graph, where: Location, overridable: Collection[Value]) -> None:
        """Set the types of initializers; those of `overridable` inputs that have a type lack contents."""
        for value, tensor in graph.initializers.items():
            overridden = value in self.types and value in overridable
            try:
                # the type that a value has from its tensor adds nothing to it
                own = not overridden and isinstance(tensor, WireTensor) and value.type is tensor.sound_type
                declared = None if own else self.types.get(value) or self._declared(value)
                kind = merge(declared, self._constants.type_of(value, tensor, overridden=overridden))
            except (SabirError, *ACCIDENTS) as error:
                self._reporter.error(error, where.at("initializer", name=value.name), cause_of(error))
                kind = None
            self._set(value, without_negatives(kind or tensor_type_of(tensor)))

    # nodes

    def _node(self, node: Node, scope: Scope, where: Location, place: int) -> tuple[Type | None, ...]:
        callee, inputs = self._callee(node, scope), node.inputs[:]
        types = tuple([None if v is None else self.types.get(v) for v in inputs])
        if scope.unbound and scope.is_open(node):
            return (None,) * len(node.outputs)
        if isinstance(callee, Function):
            return self._call(callee, node, types, scope, at_node(where, place, node))
        if node.graphs:
            return self._infer(callee, node, types, scope, at_node(where, place, node), [])
        attributes = tuple(node.attributes.values())
        if self._absent:
            inputs = self._present(node)
        key = (
            callee, scope, *map(id, attributes), None, *map(id, types), None,
            *[v is None for v in inputs], None, *[v is None for v in node.outputs],
        )  # fmt: skip
        memo = self._memo.get(key)
        if memo is None:
            conditions: list[Condition] = []
            results = self._infer(callee, node, types, scope, where, conditions)
            memo = self._memo[key] = _Memo(results, attributes, conditions)
        for condition in memo.conditions:
            at = at_node(where, place, node)
            self._reporter.add(condition_diagnostic(node, condition, self._sizes, at))
        return memo.results

    def _present(self, node: Node) -> Sequence[Value | None]:
        """Return the operands of a node, None for those that the call of its function leaves out."""
        return [None if v in self._absent else v for v in node.inputs] if self._absent else node.inputs

    def _infer(
        self, version: Version, node: Node, types: Sequence[Type | None], scope: Scope, where: Location,
        conditions: list[Condition],
    ) -> tuple[Type | None, ...]:  # fmt: skip
        results = infer_call(
            version, node, self._present(node), types, scope, where, self.apply, conditions=conditions
        )
        return tuple(map(self._intern, results))

    def apply(
        self, graph: Graph, inputs: Sequence[Type | None], scope: Scope, where: Location
    ) -> tuple[Type | None, ...]:
        """Infer a subgraph for one list of input types, and return the types of its outputs.

        The types of the values inside replace those of an earlier application.
        """
        if len(inputs) not in graph.input_counts:
            raise InferenceError(
                f"the subgraph {graph.name!r} takes {len(graph.inputs)} inputs, and gets {len(inputs)}"
            )
        key = (*self._applied.key(graph, inputs, scope, self.types), frozenset(self._absent))
        found = self._applied.find(graph, key)
        inside = values_of(graph)
        for value in inside:
            self.types.pop(value, None)
        if found is not None:
            self.types.update(found.inside)
            return found.results
        for value, kind in zip(graph.inputs, inputs, strict=False):
            whole = merge(self._declared(value), kind)
            if whole is not None:
                self._set(value, whole)
        self._initializers(graph, where, graph.inputs[: len(inputs)])
        check_depth(2 + self._depth)  # this graph and the outermost
        self._depth += 1
        try:
            results = self._graph(graph, scope, where)
        finally:
            self._depth -= 1
        self._applied.keep(graph, key, results, inside, self.types)
        return results

    def _call(
        self, function: Function, node: Node, types: Sequence[Type | None], scope: Scope, where: Location
    ) -> tuple[Type | None, ...]:
        """Infer a function's body for one call; calls that are alike are inferred once."""
        check_call(function, node)
        if any(f is function for f in self._calling):
            raise SchemaError(f"{function_label(function)} calls itself")
        inner = scope.of_call(function, node)
        self._reporter.newer_opsets(inner, where)
        attributes = tuple(inner.bindings.values()) if inner.bindings else ()
        ports = zip_longest(function.graph.inputs, self._present(node))
        absent = frozenset(port for port, value in ports if value is None)
        key = (function, absent, *map(id, types), None, *map(id, attributes))
        memo = self._calls.get(key)
        if memo is None:
            self._absent |= absent
            try:
                results = self._call_body(function, types, inner, where)
            finally:
                self._absent -= absent
            memo = self._calls[key] = _Memo(tuple(map(self._intern, results)), attributes)
        return memo.results

    def _call_body(
        self, function: Function, types: Sequence[Type | None], inner: Scope, where: Location
    ) -> tuple[Type | None, ...]:
        for value, kind in zip(function.graph.inputs, types, strict=False):
            if kind is not None:
                self.types[value] = kind
        where = where.at("function", name=function.name)
        self._initializers(function.graph, where, function.graph.inputs)
        self._calling.append(function)
        try:
            return self._graph(function.graph, inner, where)
        finally:
            self._calling.pop()
            self._inside.take(function, self.types)

    # facts

    def _adopt(self, value: Value) -> None:
        """Set the type of a value that was added to the model, or is inside a function."""
        data, kind = value.constant, self.type_of(value)
        if data is not None:
            kind = self._constants.type_of(value, data, overridden=value.is_input)
        if kind is not None:
            self._set(value, kind)

    def _set(self, value: Value, kind: Type) -> None:
        self.types[value] = self._intern(kind) or kind

    def _intern(self, kind: Type | None) -> Type | None:
        """Return the one object for a type, so that calls can be remembered by identity."""
        return None if kind is None else self._interned.setdefault(kind, kind)
