"""What nodes call, looked up once a name, and operator calls as facts that outlive the graph."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import ACCIDENTS, EvaluationError, InferenceError, SabirError, SchemaError
from sabir.evaluation._sizes import Sizes
from sabir.evaluation._steps import Step
from sabir.schema import Call, as_results, check_results

if TYPE_CHECKING:
    from sabir.ir import Attribute, Function, Node
    from sabir.schema import Scope, Version


class Callees:
    """What the nodes of one scope call, each name looked up once: a wrong name costs a search for a hint."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._found: dict[tuple[str, str, str], Version | Function | SchemaError] = {}

    def of(self, node: Node) -> Version | Function:
        """Return what a node calls; raises SchemaError where that is nothing."""
        key = (node.domain, node.op, node.overload)
        found = self._found.get(key)
        if found is None:
            try:
                found = self._scope.runnable(node)
            except SchemaError as error:
                found = error
            self._found[key] = found
        if isinstance(found, SchemaError):
            raise found
        return found


class OperatorCall(NamedTuple):
    """A node that calls an operator, free of the graph.

    `named` tells which outputs the node names, `lack` why it cannot run where it stands.
    """

    version: Version
    attributes: dict[str, Attribute]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    named: tuple[bool, ...]
    label: str
    lack: str

    @property
    def facts(self) -> Call:
        """What a behaviour may ask of the call."""
        return Call(self.named, self.version.since)


def plain_step(call: OperatorCall) -> Step:
    """Return the step of a node without subgraphs; raises SchemaError for its attributes."""
    if call.lack:
        return Step(functools.partial(_fail, call.lack), (), call.outputs, call.label)
    binding, facts = call.version.binding("evaluate"), call.facts
    function = binding.prepare(binding.arguments(call.attributes), facts)
    if not any(call.inputs):
        _check_constant(call)
    types = Sizes(call.version, call.attributes, facts)
    return Step(function, call.inputs, call.outputs, call.label, types)


def _check_constant(call: OperatorCall) -> None:
    """Raise SchemaError where a call without inputs gives a type that its version does not admit."""
    binding = call.version.binding("infer")
    try:
        results = as_results(binding((), binding.arguments(call.attributes), call.facts))
    except (SabirError, *ACCIDENTS):
        return  # the run will say what is wrong
    try:
        check_results(call.version, (), results)
    except InferenceError as error:
        raise SchemaError(str(error)) from error


def _fail(problem: str) -> Any:
    """Fail in the run: a branch that never runs may hold such a node."""
    raise EvaluationError(problem)
