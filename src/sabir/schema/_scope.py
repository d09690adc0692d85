"""Scopes: what the operator names and attribute references of a graph's nodes mean."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sabir.base import SchemaError, UnsupportedError, counted, legible, quote, suggest
from sabir.ir import (
    NEWEST_IR,
    Attribute,
    Function,
    FunctionKey,
    Graph,
    Model,
    Node,
    bound_opsets,
    canonical_domain,
    check_is_model,
    unknown_ir,
)
from sabir.schema._version import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.schema._documents import Declaration
    from sabir.schema._registry import Registry

MOST_CALLS = 100  # functions inside functions; the standard forbids recursion, a file may not


@dataclass(frozen=True, eq=False, slots=True)
class Scope:
    """The operator sets, functions and attribute bindings for the nodes of a graph; compared by identity.

    `functions` are those of the model; the bodies of functions of documents do not see them. `opsets` has the
    version that applies of each domain, by its canonical name. `default` is the model's version of the
    default domain, which applies in a function that imports none. With `newer_opsets` a
    version that the registry does not know yet is taken as the newest known one. `unbound` is the scope of a
    function's body outside any call: the values of its attribute references are unknown. `given` has, by
    their ids, the scopes of graphs that callers hand in as attributes: their nodes mean what they mean there.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> Scope.of(model, STANDARD).opset('')
    21
    """

    registry: Registry
    opsets: dict[str, int]
    functions: Mapping[FunctionKey, Function] = field(default_factory=dict[FunctionKey, Function])
    bindings: Mapping[str, Attribute] | None = None
    depth: int = 0
    default: int | None = None
    newer_opsets: bool = False
    unbound: bool = False
    given: Mapping[int, Scope] = field(default_factory=dict[int, "Scope"])

    @classmethod
    def of(cls, model: Model, registry: Registry, *, newer_opsets: bool = False) -> Scope:
        """Return the scope of a model's main graph; before IR 3 all models used the first operator set.

        Raises UnsupportedError for a model that imports a version newer than any that the registry knows, or
        has an unknown IR version, unless `newer_opsets` is set, TypeError for anything but a model.
        """
        check_is_model(model)
        if not newer_opsets and not 0 <= model.ir_version <= NEWEST_IR:  # 0: the model states none
            raise UnsupportedError(
                f"{unknown_ir(model.ir_version)}; a session with `newer_opsets` takes it for that one"
            )
        default = model.opset()
        opsets, functions = bound_opsets(model.opsets, default), model.functions_by_key()
        scope = cls(registry, opsets, functions, default=default, newer_opsets=newer_opsets)
        scope.require_known()
        return scope

    def opset(self, domain: str) -> int | None:
        """Return the version of a domain that applies, or None."""
        return self.opsets.get(canonical_domain(domain))

    def newer(self) -> dict[str, tuple[int, int]]:
        """Return the domains whose version is newer than any known one: that version, the newest known."""
        found: dict[str, tuple[int, int]] = {}
        for domain, version in self.opsets.items():
            newest = self.registry.newest_opset(domain)
            if newest is not None and version > newest:
                found[domain] = version, newest
        return found

    def require_known(self) -> None:
        """Raise UnsupportedError for a version newer than any known one, unless `newer_opsets` is set."""
        newer = self.newer()
        if newer and not self.newer_opsets:
            domain, versions = next(iter(newer.items()))
            raise UnsupportedError(
                f"{newer_opset(domain, *versions)}; a session with `newer_opsets` binds that one"
            )

    def callee(self, node: Node) -> Version | Function:
        """Return what a node calls: a model-local function, or the operator version in force.

        Raises SchemaError where there is neither, saying what is missing.
        """
        function = self.function_of(node)
        if function is not None:
            return function
        domain = canonical_domain(node.domain)
        opset = self.opsets.get(domain)
        shown = legible(f"{node.domain or 'ai.onnx'}.{node.op}")
        if opset is None:
            raise SchemaError(f"{shown}: no operator set of {node.domain or 'ai.onnx'!r} is imported")
        operator = self.registry.find(domain, node.op)
        version = None if operator is None else operator.find(opset)
        if version is not None:
            return version
        declaration = self.registry.declaration(domain, node.op, opset)
        if declaration is not None:
            raise SchemaError(_undefined(declaration, node))
        since = self.registry.declared_after(domain, node.op, opset)
        if operator is not None:
            since = operator.versions[0].since
        if since is not None:
            raise SchemaError(f"{shown} came with opset {since}, but opset {opset} is imported")
        raise SchemaError(f"{shown} is not an operator that Sabir knows{self._hint(domain, node.op)}")

    def function_of(self, node: Node) -> Function | None:
        """Return the function that a node calls, of the model or of a document; None for an operator."""
        domain = canonical_domain(node.domain)
        function = self.functions.get((domain, node.op, node.overload))
        if function is None and self.registry.operator_sets:
            return self.registry.function(domain, node.op, node.overload, self.opsets.get(domain))
        return function

    def declaration(self, node: Node) -> Declaration | None:
        """Return what a document declares of the operator that a node names; None for any other callee."""
        domain = canonical_domain(node.domain)
        if not self.registry.operator_sets or (domain, node.op, node.overload) in self.functions:
            return None
        return self.registry.declaration(domain, node.op, self.opsets.get(domain))

    def knows(self, node: Node) -> bool:
        """Whether it is known which operators and functions there are for a node to call.

        It is not in a domain without operators and functions, nor for an operator that a document declares
        without a body.
        """
        declaration = self.declaration(node)
        if declaration is not None:
            return bool(declaration.overloads)
        domain = canonical_domain(node.domain)
        return self.registry.has_domain(domain) or any(key[0] == domain for key in self.functions)

    def overloads(self, node: Node) -> list[str]:
        """Return the overloads of the functions with the domain and name that a node calls, sorted."""
        name = canonical_domain(node.domain), node.op
        declaration = self.declaration(node)
        documented = () if declaration is None else declaration.overloads
        return sorted({*documented, *(key[2] for key in self.functions if key[:2] == name)})

    def version(self, node: Node) -> Version | None:
        """Return the operator version that a node names, None where the registry has none in force."""
        return self.registry.find_version(node.domain, node.op, self.opset(node.domain))

    def runnable(self, node: Node) -> Version | Function:
        """Return what a node calls, as `callee` does; raises SchemaError for a removed operator too.

        A version that was deprecated after its release is not removed: GroupNormalization:18.
        """
        found = self.callee(node)
        if isinstance(found, Version) and found.removed:
            domain = found.operator.domain
            raise SchemaError(
                f"{found.operator.name} was removed from {domain or 'ai.onnx'} with opset {found.since}, and"
                f" the model imports {self.opsets[domain]}. {found.changes}"
            )
        return found

    def arguments(self, attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        """Return a node's attributes with references to the function's attributes resolved.

        A reference to an attribute that the call does not have is left out, as is any outside a function.
        """
        if not any(a.ref for a in attributes.values()):
            return attributes
        bindings = self.bindings or {}
        found: dict[str, Attribute] = {}
        for name, attribute in attributes.items():
            actual = bindings.get(attribute.ref) if attribute.ref else attribute
            if actual is not None:
                found[name] = actual if actual.name == name else replace(actual, name=name)
        return found

    def of_call(self, function: Function, node: Node) -> Scope:
        """Return the scope of a function's body for one call.

        Raises SchemaError for an invalid call, UnsupportedError as `of` does.
        """
        if self.depth >= MOST_CALLS:
            deep = f"calls of functions are nested deeper than {MOST_CALLS}"
            raise SchemaError(f"{deep}; {function_label(function)} may call itself")
        actual = self.arguments(node.attributes)
        unknown = actual.keys() - function.attributes.keys()
        if unknown:
            raise SchemaError(f"{function_label(function)} has no attribute {min(unknown)!r}")
        defaults = {name: a for name, a in function.attributes.items() if a is not None}
        inner = self.of_body(function)
        inner.require_known()
        graphs = {id(g): self.scope_of(g) for a in actual.values() for g in a.graphs}
        given = {**self.given, **graphs} if graphs else self.given
        return replace(
            inner, bindings={**defaults, **actual}, depth=self.depth + 1, unbound=False, given=given
        )

    def scope_of(self, graph: Graph) -> Scope:
        """Return the scope of the nodes of a subgraph: this one, unless a caller of the function gave it."""
        return self.given.get(id(graph), self)

    def of_body(self, function: Function) -> Scope:
        """Return the scope of a function's body, without the attributes of a call."""
        opsets = bound_opsets(function.opsets, self.default)
        functions: Mapping[FunctionKey, Function] = (
            {} if self.registry.is_documented(function) else self.functions
        )
        return replace(self, opsets=opsets, functions=functions, bindings={}, unbound=True)

    def is_open(self, node: Node) -> bool:
        """Return whether an attribute of a node refers to one whose value no call has supplied."""
        return self.unbound and any(a.ref for a in node.attributes.values())

    def _hint(self, domain: str, name: str) -> str:
        if name == "ATen":
            return (
                "; it calls a function of PyTorch by its name, which PyTorch alone has."
                " Export the model without the fallback to ATen"
            )
        if not self.registry.has_domain(domain):
            return (
                f"; no operators of domain {domain!r} are known, and the model defines no such function."
                f" Known are those of {self.registry.listed_domains};"
                " `registry=` (`--operators` of the program) adds your own"
            )
        return suggest(name, self.registry.names(domain))


class Callees:
    """What nodes call, looked up once for each scope and name: a wrong name costs a search for a hint.

    `look_up` is `Scope.callee`, or `Scope.runnable` where an operator that was removed is an error.
    """

    def __init__(self, look_up: Callable[[Scope, Node], Version | Function] = Scope.callee) -> None:
        self._look_up = look_up
        self._found: dict[tuple[Scope, str, str, str], Version | Function | SchemaError] = {}

    def of(self, node: Node, scope: Scope) -> Version | Function:
        """Return what a node calls; raises SchemaError as `look_up` does."""
        found = self._found.get((scope, node.domain, node.op, node.overload)) or self.find(node, scope)
        if isinstance(found, SchemaError):
            raise found
        return found

    def find(self, node: Node, scope: Scope) -> Version | Function | SchemaError:
        """Return what `look_up` returns, or the error that it raises."""
        key = (scope, node.domain, node.op, node.overload)
        found = self._found.get(key)
        if found is None:
            try:
                found = self._look_up(scope, node)
            except SchemaError as error:
                found = error
            self._found[key] = found
        return found


def _undefined(declaration: Declaration, node: Node) -> str:
    """Return the message about a call of an operator that a document declares, and does not define."""
    label = declaration.operator_set.label
    if declaration.overloads:
        overload = quote(node.overload)
        return f"{declaration} has no overload {overload} in the document of the operator set {label}"
    return (
        f"{declaration} is declared by the document of the operator set {label}, which has no body for it;"
        " `registry=` (`--operators` of the program) adds an implementation"
    )


def newer_opset(domain: str, version: int, newest: int) -> str:
    """Return the message about a version that is newer than the newest known one."""
    return f"opset {version} of {quote(domain or 'ai.onnx')} is not known; the newest known one is {newest}"


def function_label(function: Function) -> str:
    """Return a function as messages name it: `function 'd.f'`, with its overload if it has one."""
    name = ".".join(filter(None, (function.domain, function.name)))
    return f"function {quote(f'{name}:{function.overload}' if function.overload else name)}"


def check_call(function: Function, node: Node) -> None:
    """Raise SchemaError where a call has more inputs or outputs than its function."""
    if len(node.inputs) > len(function.graph.inputs):
        takes = f"{function_label(function)} takes {counted(len(function.graph.inputs), 'input')}"
        raise SchemaError(f"{takes}, but the node has {len(node.inputs)}")
    if len(node.outputs) > len(function.graph.outputs):
        has = f"{function_label(function)} has {counted(len(function.graph.outputs), 'output')}"
        raise SchemaError(f"{has}, but the node has {len(node.outputs)}")
