"""Scopes: what the names in a node mean where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sabir.base import SchemaError, legible, suggest
from sabir.ir import Attribute, Function, FunctionKey, Model, Node, canonical_domain, find_opset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.schema._registry import Registry
    from sabir.schema._version import Version

_FIRST_IR_OF_IMPORTS = 3
MOST_CALLS = 100  # functions inside functions; the standard forbids recursion, a file may not


@dataclass(frozen=True, slots=True)
class Scope:
    """The operator sets, functions and attribute bindings that hold for a graph's nodes."""

    registry: Registry
    opsets: dict[str, int]
    functions: Mapping[FunctionKey, Function] = field(default_factory=dict[FunctionKey, Function])
    bindings: Mapping[str, Attribute] | None = None
    depth: int = 0

    @classmethod
    def of(cls, model: Model, registry: Registry) -> Scope:
        """Return the scope of a model's main graph; before IR 3 all models meant the first operator set."""
        opsets = model.opsets or ({"": 1} if 0 < model.ir_version < _FIRST_IR_OF_IMPORTS else {})
        return cls(registry, opsets, model.functions_by_key())

    def opset(self, domain: str) -> int | None:
        """Return the version imported of a domain, or None."""
        return find_opset(self.opsets, domain)

    def callee(self, node: Node) -> Version | Function:
        """Return what a node calls: a model-local function, or the operator version in force.

        Raises SchemaError where neither is to be found, saying what is missing.
        """
        domain = canonical_domain(node.domain)
        function = self.functions.get((domain, node.op, node.overload))
        if function is not None:
            return function
        opset = find_opset(self.opsets, domain)
        shown = legible(f"{node.domain or 'ai.onnx'}.{node.op}")
        if opset is None:
            raise SchemaError(f"{shown}: no operator set of {node.domain or 'ai.onnx'!r} is imported")
        operator = self.registry.find(domain, node.op)
        if operator is None:
            raise SchemaError(f"{shown} is no operator that Sabir knows{self._hint(domain, node.op)}")
        version = operator.find(opset)
        if version is None:
            raise SchemaError(
                f"{shown} came with opset {operator.versions[0].since}; what is imported is {opset}"
            )
        return version

    def arguments(self, attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        """Return a node's attributes with references to the function's attributes resolved.

        One that refers to nothing, as any does outside a function, is left out.
        """
        if not any(a.ref for a in attributes.values()):
            return attributes
        bindings = self.bindings or {}
        found: dict[str, Attribute] = {}
        for name, attribute in attributes.items():
            given = bindings.get(attribute.ref) if attribute.ref else attribute
            if given is not None:
                found[name] = given if given.name == name else replace(given, name=name)
        return found

    def inside(self, function: Function, node: Node) -> Scope:
        """Return the scope of a function's body for one call; raises SchemaError for a bad call."""
        if self.depth >= MOST_CALLS:
            raise SchemaError(
                f"functions call one another deeper than {MOST_CALLS}; {function!r} may call itself"
            )
        given = self.arguments(node.attributes)
        unknown = given.keys() - function.attributes.keys()
        if unknown:
            raise SchemaError(f"{function!r} has no attribute {min(unknown)!r}")
        defaults = {name: a for name, a in function.attributes.items() if a is not None}
        return Scope(self.registry, function.opsets, self.functions, {**defaults, **given}, self.depth + 1)

    def within(self, function: Function) -> Scope:
        """Return the scope of a function's body, whoever calls it."""
        return replace(self, opsets=function.opsets, bindings={})

    def _hint(self, domain: str, name: str) -> str:
        if not self.registry.has_domain(domain):
            return f"; no operators of domain {domain!r} are known, and the model defines no such function"
        return suggest(name, self.registry.names(domain))


def check_call(function: Function, node: Node) -> None:
    """Raise SchemaError where a call gives more inputs or outputs than its function has."""
    if len(node.inputs) > len(function.graph.inputs):
        raise SchemaError(
            f"{function!r} takes {len(function.graph.inputs)} inputs, and the node has {len(node.inputs)}"
        )
    if len(node.outputs) > len(function.graph.outputs):
        raise SchemaError(
            f"{function!r} has {len(function.graph.outputs)} outputs; the node asks for {len(node.outputs)}"
        )
