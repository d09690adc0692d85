"""The inference engine: each node's behaviour, applied to types in graph order. It names no operator.

What a file declares of a computed value is a claim, which is kept and merged with what follows. Where the two
contradict each other, that is an error; where the claim holds only for some sizes of the inputs, a warning.
"""

from __future__ import annotations

import dataclasses
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import (
    ACCIDENTS,
    Finding,
    InferenceError,
    LimitError,
    Limits,
    Location,
    SabirError,
    SchemaError,
    UnsupportedError,
    check_depth,
    check_nodes,
    check_time,
    legible,
    run_within,
)
from sabir.inference._applied import Applications, Body, values_of
from sabir.inference._claims import claim_finding, symbols_of_inputs
from sabir.inference._declared import Declarations, retype_leftovers
from sabir.inference._facts import (
    check_sizes,
    check_types,
    constant_type,
    misdeclared,
    stand_ins,
    tensor_type_of,
    without_contents,
)
from sabir.inference._folding import folded
from sabir.inference._merge import merge, without_negatives
from sabir.inference._orders import Orders
from sabir.inference._places import at_node, holding, is_output
from sabir.inference._rules import Broken, Calling, broken_by
from sabir.ir import Function, Graph, Model, Node, TensorType, Type, Value, WireTensor
from sabir.opsets import STANDARD
from sabir.schema import Call, Registry, Scope, Version, as_results, check_call, check_results, newer_opset

if TYPE_CHECKING:
    from collections.abc import Sequence


_CYCLE = Broken("GRAPH006")
_CALL = 32  # nodes that are inferred in the time that a call takes by itself
_FIRST_IR_OF_DEFAULTS = 4  # before it every initializer had to be an input, and meant a constant


class _Memo(NamedTuple):
    """A remembered call; it holds on to what its key names by id."""

    results: tuple[Type | None, ...]
    held: tuple[object, ...]


class Inference:
    """One pass over a model: `types` gets what is known of each value, `findings` what is wrong.

    With `fresh` what is declared of a computed value counts only where nothing follows of it. A finding has
    the rule and the severity that the checker reports: a warning where a node cannot be judged.
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
        self.model, self.registry, self.strict, self._limits = model, registry, strict, limits
        self._scope = Scope.of(model, registry, newer_opsets=True)
        self._state = model.state()  # what training changes: its contents are not known
        self.types: dict[Value, Type] = {}
        self.findings: list[Finding] = []
        self._interned: dict[Type, Type] = {}
        self._memo: dict[tuple[object, ...], _Memo] = {}
        self._declarations = Declarations(self._interned, fresh=fresh)
        self._declared = self._declarations.of
        self._sizes: dict[str, str] = {}  # the dimension variables of the model's inputs
        self._told: set[Finding] = set()
        self._raised: InferenceError | None = None
        self._callees: dict[tuple[int, str, str, str], tuple[Scope, Version | Function | SchemaError]] = {}
        self._inside: dict[Value, Type | None] = {}  # values of functions, over all calls
        self._applied = Applications()
        self._orders = Orders()
        self._depth = 0  # in subgraphs
        self._inner = 0  # nodes inferred outside the main graph, each time that they were
        self._calling: list[Function] = []  # whose bodies are inferred now; their values differ by call
        self._absent: set[Value] = set()  # their inputs that the calls leave out

    def run(self) -> None:
        """Infer the main graph, and the graphs inside it as its nodes call them; raises LimitError."""
        run_within(self._limits, self._run, self.model.graph)

    def _run(self, graph: Graph) -> None:
        self._sizes = symbols_of_inputs(graph)
        self._report_newer(self._scope, Location())
        for value in graph.inputs:
            declared = self._declared(value)
            if declared is not None:
                self._set(value, declared)
        self._constants(graph, fixed=self.model.ir_version < _FIRST_IR_OF_DEFAULTS)
        self._graph(graph, self._scope, Location().at("graph"))

    def visit(self, node: Node) -> None:
        """Infer one more node of the main scope, and write what is found, contents too, into its outputs."""
        for value in node.inputs:
            if value is not None and value not in self.types and value.type is not None:
                data = value.constant
                known = value not in self._state
                self._set(value, value.type if data is None else constant_type(data, known=known))
        results = self._node(node, self._scope, Location(), 0)
        for value, kind in zip(node.outputs, results, strict=False):
            if value is not None and kind is not None:
                value.type = self.types[value] = kind

    def annotate(self) -> None:
        """Write the types found into the values."""
        stripped: dict[int, Type] = {}
        inside = {v: kind for v, kind in self._inside.items() if kind is not None}
        for value, kind in {**inside, **self.types}.items():
            plain = stripped.get(id(kind))
            if plain is None:
                plain = stripped[id(kind)] = without_contents(kind)
            if not isinstance(plain, TensorType) or plain.element.number:
                found = self._declarations.written(value, kind, plain)
                # a type is shared by all values that have it; what one value's file says beside it is not
                if found != value.type:
                    note = value.type.note if value.type is not None else None
                    value.type = found if note is None else dataclasses.replace(found, note=note)
        if self._declarations.fresh:
            retype_leftovers(self.model)

    # graphs

    def _graph(self, graph: Graph, scope: Scope, where: Location) -> tuple[Type | None, ...]:
        self._count(graph)
        for place, node in self._orders.placed(graph, lambda error: self._report(error, where, _CYCLE)):
            check_time()
            try:
                results = self._node(node, scope, where, place)
            except LimitError:
                raise
            except SabirError as error:
                if error is self._raised:  # in a subgraph, and says where
                    raise
                self._report(
                    error, at_node(where, place, node), broken_by(error, Calling(node, scope, self._callee))
                )
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
        """Report an output that is declared as what its operator cannot give, where inference cannot tell."""
        callee = self._callee(node, scope)
        if isinstance(callee, Version):
            inputs = [v and self.types.get(v) for v in node.inputs]
            error = misdeclared(callee, inputs, results, [v and self._declared(v) for v in node.outputs])
            if error is not None:
                self._report(error, where)

    def _define(self, value: Value, kind: Type | None, where: Location, place: int, node: Node) -> None:
        declared = self._declared(value, anyway=kind is None)
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
            self._report(error, at_node(where, place, node).at("output", name=value.name))
            self._set(value, declared)
            return
        self.types[value] = merged.whole
        if merged.claim is not None:
            at = at_node(where, place, node).at("output", name=value.name)
            self._note(claim_finding(value, declared, merged.claim, self._sizes, at))

    def _output(self, value: Value | None, where: Location, place: int) -> Type | None:
        if value is None:
            return None
        found = self.types.get(value)
        if found is None and value.source is None:
            self._report(
                SchemaError("nothing defines this output"),
                where.at("output", index=place, name=value.name),
            )
        return found or self._declared(value)

    def _constants(self, graph: Graph, *, fixed: bool = False) -> None:
        for value, tensor in graph.initializers.items():
            given = value in self.types
            known = (fixed or not given) and value not in self._state
            try:
                # the type that a value has from its tensor adds nothing to it
                own = not given and isinstance(tensor, WireTensor) and value.type is tensor.sound_type
                declared = None if own else self.types.get(value) or self._declared(value)
                kind = merge(declared, constant_type(tensor, known=known))
            except (SabirError, *ACCIDENTS) as error:
                self._report(error, Location().at("graph").at("initializer", name=value.name))
                kind = None
            self._set(value, without_negatives(kind or tensor_type_of(tensor)))

    # nodes

    def _node(self, node: Node, scope: Scope, where: Location, place: int) -> tuple[Type | None, ...]:
        callee = self._callee(node, scope)
        types = tuple(None if v is None else self.types.get(v) for v in node.inputs)
        if isinstance(callee, Function):
            return self._call(callee, node, types, scope, at_node(where, place, node))
        if node.graphs:
            return self._infer(callee, node, types, scope, at_node(where, place, node))
        held = tuple(node.attributes.values())
        key = (
            id(callee), id(scope.bindings), *map(id, held), None, *map(id, types), None,
            *(v is None for v in self._given(node)), None, *(v is None for v in node.outputs),
        )  # fmt: skip
        memo = self._memo.get(key)
        if memo is None:
            results = tuple(self._intern(t) for t in self._infer(callee, node, types, scope, where))
            memo = self._memo[key] = _Memo(results, (callee, scope, held, types))
        return memo.results

    def _given(self, node: Node) -> Sequence[Value | None]:
        """Return the inputs of a node, without those that the call of the function around it leaves out."""
        return [None if v in self._absent else v for v in node.inputs] if self._absent else node.inputs

    def _callee(self, node: Node, scope: Scope) -> Version | Function:
        key = (id(scope), node.domain, node.op, node.overload)
        found = self._callees.get(key)
        if found is None:
            try:
                found = scope, scope.callee(node)
            except SchemaError as error:
                found = scope, error
            self._callees[key] = found
        if isinstance(found[1], SchemaError):
            raise found[1]
        return found[1]

    def _infer(
        self, version: Version, node: Node, types: Sequence[Type | None], scope: Scope, where: Location
    ) -> tuple[Type | None, ...]:
        binding = version.binding("infer")
        given = self._given(node)
        binding.signature.check_arity(given, len(node.outputs))
        inputs = stand_ins(version, given, types)
        arguments = binding.arguments(
            scope.arguments(node.attributes),
            lambda g: Body(self.apply, g, scope, where.at("attribute", name=holding(node, g))),
        )
        if inputs is None:
            return (None,) * len(node.outputs)
        check_types(version, inputs)
        call = Call(tuple(v is not None for v in node.outputs), version.since)
        try:
            results = as_results(binding(inputs, arguments, call))
        except ACCIDENTS as error:
            raise InferenceError(f"{version} on ({', '.join(map(str, inputs))}): {error}") from error
        check_sizes(results)
        check_results(version, inputs, results)
        return folded(version, node, inputs, results, scope, call)

    def apply(
        self, graph: Graph, inputs: Sequence[Type | None], scope: Scope, where: Location
    ) -> tuple[Type | None, ...]:
        """Infer a subgraph for one set of input types; what it finds replaces what an earlier one did."""
        if len(inputs) not in graph.input_counts:
            raise InferenceError(
                f"the subgraph {graph.name!r} takes {len(graph.inputs)} inputs, and gets {len(inputs)}"
            )
        key = (*self._applied.key(graph, inputs, scope, self.types), frozenset(self._absent))
        found = self._applied.find(key)
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
        self._constants(graph)
        check_depth(2 + self._depth)  # this graph and the outermost
        self._depth += 1
        try:
            results = self._graph(graph, scope, where)
        finally:
            self._depth -= 1
        self._applied.keep(key, results, inside, self.types)
        return results

    def _call(
        self, function: Function, node: Node, types: Sequence[Type | None], scope: Scope, where: Location
    ) -> tuple[Type | None, ...]:
        """Infer a function's body for one call; calls that are alike are inferred once."""
        check_call(function, node)
        if any(f is function for f in self._calling):
            raise SchemaError(f"{function!r} calls itself")
        inner = scope.inside(function, node)
        self._report_newer(inner, where)
        held = (*types, *inner.bindings.values()) if inner.bindings else types
        ports = zip_longest(function.graph.inputs, self._given(node))
        absent = frozenset(port for port, value in ports if value is None)
        key = (id(function), absent, *map(id, held))
        memo = self._memo.get(key)
        if memo is None:
            self._absent |= absent
            try:
                results = self._call_body(function, types, inner, where)
            finally:
                self._absent -= absent
            memo = self._memo[key] = _Memo(tuple(map(self._intern, results)), (function, held))
        return memo.results

    def _call_body(
        self, function: Function, types: Sequence[Type | None], inner: Scope, where: Location
    ) -> tuple[Type | None, ...]:
        for value, kind in zip(function.graph.inputs, types, strict=False):
            if kind is not None:
                self.types[value] = kind
        self._constants(function.graph)
        self._calling.append(function)
        try:
            return self._graph(function.graph, inner, where.at("function", name=function.name))
        finally:
            self._calling.pop()
            for value in values_of(function.graph):
                kind = self.types.pop(value, None)
                if kind is not None:
                    self._keep(value, kind)

    def _keep(self, value: Value, kind: Type) -> None:
        """Note what a value inside a function is, as far as all calls agree."""
        known = self._inside.setdefault(value, kind)
        if known is None or known is kind:
            return
        try:
            self._inside[value] = known.join(kind)
        except TypeError:
            self._inside[value] = None

    # facts

    def _set(self, value: Value, kind: Type) -> None:
        self.types[value] = self._intern(kind) or kind

    def _intern(self, kind: Type | None) -> Type | None:
        """Return the one object that stands for a type here, so that calls can be remembered by identity."""
        return None if kind is None else self._interned.setdefault(kind, kind)

    def _report_newer(self, scope: Scope, where: Location) -> None:
        """Report the versions that are newer than any known one; the newest known one is what is inferred."""
        for domain, versions in scope.newer().items():
            at = where.at("opset_import", name=domain or "ai.onnx")
            self._report(UnsupportedError(newer_opset(domain, *versions)), at, Broken("MODEL006"))

    def _report(self, error: Exception, where: Location, broken: Broken | None = None) -> None:
        rule, severity = broken or broken_by(error)
        if self.strict and severity == "error":
            self._raised = InferenceError(f"{where}: {error}")
            raise self._raised from error
        self._note(Finding(rule, legible(str(error)), where, severity=severity))

    def _note(self, finding: Finding | None) -> None:
        if finding is not None and finding not in self._told:  # a subgraph may be inferred more than once
            self._told.add(finding)
            self.findings.append(finding)
