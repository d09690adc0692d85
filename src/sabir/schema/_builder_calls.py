"""Calls as a builder writes them: Python values become the constants and attributes of a signature."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias

from sabir.base import SchemaError, suggest
from sabir.elements import FLOAT, INT64, element
from sabir.ir import (
    Attribute,
    Constant,
    FunctionCallee,
    Literal,
    Node,
    SparseTensor,
    Tensor,
    TensorType,
    Value,
    canonical_domain,
    coerced,
    converted,
    literal,
)
from sabir.schema._ports import Constraint, Port, port_at
from sabir.schema._python import docstring, python_signature
from sabir.schema._scope import Scope
from sabir.schema._values import ElementTypes
from sabir.schema._version import Version

if TYPE_CHECKING:
    import inspect
    from collections.abc import Iterator, Mapping, Sequence
    from types import FunctionType

    from sabir.elements import ElementType
    from sabir.ir import Site
    from sabir.schema._registry import Registry

Operands: TypeAlias = "list[Value | Constant | None]"
_FIRST_CAST_LIKE = 15  # opset


class BuilderCalls:
    """The operators of a registry, as builders call them."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._found: dict[tuple[str, str, int | None], VersionCallee | FunctionCallee | None] = {}
        self._names: dict[tuple[str, int | None], list[str]] = {}

    def find(self, domain: str, op: str, opsets: Mapping[str, int]) -> VersionCallee | FunctionCallee | None:
        """Return the version of an operator that applies, or the function of a document.

        None in a domain or an opset that is not known, and for an operator that a document only declares.

        Raises SchemaError for an operator that its domain does not have in this opset.
        """
        domain = canonical_domain(domain)
        key = domain, op, opsets.get(domain)
        try:
            return self._found[key]
        except KeyError:
            found = self._found[key] = self._find(domain, op, opsets)
            return found

    def require(self, opsets: Mapping[str, int]) -> None:
        """Raise SchemaError for an operator set that the registry does not have."""
        for domain, version in opsets.items():
            newest = self._registry.newest_opset(domain)
            if self._is_newer(domain, version) or version < 1:
                raise SchemaError(
                    f"there is no operator set {version} of {domain or 'ai.onnx'!r}; the newest is {newest};"
                    " pass `check=False` to build nodes without any check"
                )

    def names(self, domain: str, opsets: Mapping[str, int]) -> list[str]:
        """Return the names of the operators of a domain in its opset, sorted; imports all of its rooms."""
        key = canonical_domain(domain), opsets.get(canonical_domain(domain))
        if key not in self._names:
            self._names[key] = self._listed(*key)
        return self._names[key]

    def _find(self, domain: str, op: str, opsets: Mapping[str, int]) -> VersionCallee | FunctionCallee | None:
        if not self._registry.has_domain(domain) or self._is_newer(domain, opsets.get(domain)):
            return None
        if domain not in opsets:
            newest = self._registry.newest_opset(domain) or 1
            raise SchemaError(
                f"{domain}.{op}: no operator set of {domain!r} is imported;"
                f" pass `opsets={{{domain!r}: {newest}}}`"
            )
        function = self._registry.function(domain, op, "", opsets[domain])
        if function is not None:
            return FunctionCallee(function)
        if self._registry.declaration(domain, op, opsets[domain]) is not None:
            return None
        if self._registry.find(domain, op) is None:
            known = [o.name for o in self._registry if o.domain == domain] or self._registry.names(domain)
            raise SchemaError(
                f"{domain or 'ai.onnx'}.{op} is not an operator that Sabir knows{suggest(op, known)}"
            )
        version = Scope(self._registry, dict(opsets)).runnable(Node(op, domain=domain))
        return VersionCallee(version) if isinstance(version, Version) else None

    def _is_newer(self, domain: str, opset: int | None) -> bool:
        newest = self._registry.newest_opset(domain)
        return opset is not None and newest is not None and opset > newest

    def _listed(self, domain: str, opset: int | None) -> list[str]:
        if opset is None:
            return []
        versions = {o.name: o.find(opset) for o in self._registry if o.domain == domain}
        known = {name for name, version in versions.items() if version is not None and not version.removed}
        return sorted(known.union(self._registry.declared_names(domain, opset)))


class VersionCallee:
    """One version of an operator, as a builder calls it."""

    def __init__(self, version: Version) -> None:
        self._version, self._formal = version, version.formal
        self.required_outputs = _required_outputs(version)
        self.methods: dict[str, FunctionType] = {}
        self._elements = {a.name for a in version.attributes if isinstance(a.values, ElementTypes)}
        self._is_variadic = any(port.variadic for port in (*version.inputs, *version.outputs))
        self._arities = set[tuple[int, int]]()  # of calls without absent inputs that were checked

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The signature of the method that calls it."""
        return python_signature(self._version)

    @functools.cached_property
    def doc(self) -> str:
        """The docstring of that method."""
        return docstring(self._version)

    def bind(
        self, site: Site, inputs: Sequence[Any], outputs: int, attributes: Mapping[str, Any]
    ) -> tuple[Operands, dict[str, Attribute]]:
        """Return the operands and attributes of a node; raises SchemaError for an invalid call.

        `site` is the builder: it knows the types of values and builds subgraphs.
        """
        are_values = all([isinstance(v, Value) for v in inputs])  # ruff: ignore[unnecessary-comprehension-in-call]  half the time
        arity = len(inputs), outputs
        if not are_values or arity not in self._arities:
            self._formal.check_arity(inputs, outputs)
            if are_values and not self._is_variadic:
                self._arities.add(arity)
        facts = {
            name: self._attribute(site, name, value)
            for name, value in attributes.items()
            if value is not None
        }
        if facts or self._formal.requires:
            self._formal.check_attributes(facts)
        if are_values or all([v is None or isinstance(v, Value) for v in inputs]):  # ruff: ignore[unnecessary-comprehension-in-call]  as above
            return list(inputs), facts
        return _Operands(self._version, inputs, site).converted(), facts

    def _attribute(self, site: Site, name: str, value: object) -> Attribute:
        formal = self._formal.attributes.get(name)
        if formal is not None:
            is_element = name in self._elements
            return coerced(self._formal.owner, name, formal.type, value, site, is_element=is_element)
        place = next((i for i, port in enumerate(self._version.inputs) if port.name == name), None)
        if place is not None:
            raise SchemaError(
                f"{self._formal.owner}: {name!r} is its input number {place}; pass it by position"
            )
        return Attribute(name, "undefined", None)  # `check_attributes` reports it


class _Operands:
    """The inputs of one call, some of them constants without an element type."""

    def __init__(self, version: Version, inputs: Sequence[Any], site: Site) -> None:
        self._version, self._inputs, self._site = version, inputs, site
        self._literals = {
            place: literal(value, self._name(place))
            for place, value in enumerate(inputs)
            if value is not None and not isinstance(value, (Value, Tensor, SparseTensor))
        }

    def converted(self) -> Operands:
        """Return the operands, each constant with the element type that its port needs."""
        operands: Operands = list(self._inputs)
        for place, constant in self._literals.items():
            operands[place] = self._operand(place, constant)
        return operands

    def _operand(self, place: int, constant: Literal) -> Value | Constant:
        """Return a constant with the element type that the port needs.

        It is that of the operands with the same type constraint; else the only one that the port admits; else
        that of an array itself, or the natural one of Python values. If such an operand has no known type, as
        in the body of a function, CastLike converts when the model is run.
        """
        admitted, name = _admitted(self._port(place)), self._name(place)
        if not admitted:
            raise SchemaError(f"{name} is no tensor; pass a value")
        partners = self._partners(place)
        known = next((e for e in map(self._known, partners) if e is not None), None)
        if known is not None:
            return converted(constant, known, name)
        if len(admitted) == 1:
            return converted(constant, admitted[0], name)
        literals = [constant, *(self._literals[p] for p in partners if p in self._literals)]
        tensor = converted(constant, self._natural(place, literals), name)
        like = next((v for v in map(self._inputs.__getitem__, partners) if isinstance(v, Value)), None)
        if like is None or self._site.opset < _FIRST_CAST_LIKE:
            return tensor
        return self._site.op("CastLike", tensor, like)

    def _natural(self, place: int, constants: Sequence[Literal]) -> ElementType:
        admitted = _admitted(self._port(place))
        arrays = [c.element for c in constants if c.element is not None]
        naturals = [c.natural for c in constants if c.natural is not None]
        natural = next((n for n in (FLOAT, *naturals) if n in naturals), None)
        for candidate in arrays or self._candidates(place, natural):
            if candidate in admitted:
                return candidate
        names = ", ".join(e.name for e in admitted)
        raise SchemaError(
            f"{self._name(place)}: the element type of the constant does not follow;"
            f" pass an array of one of {names}"
        )

    def _candidates(self, place: int, natural: ElementType | None) -> Iterator[ElementType]:
        """Yield the element types for Python values; numbers prefer a floating-point one of the call."""
        if natural in {FLOAT, INT64} and not self._port(place).heterogeneous:
            found = (self._known(other) for other in range(len(self._inputs)))
            yield from (e for e in found if e is not None and e.is_float)
        if natural is not None:
            yield natural
        if natural is INT64:
            yield FLOAT

    def _partners(self, place: int) -> list[int]:
        """Return the other inputs whose type constraint is that of an input."""
        port = self._port(place)
        if not isinstance(port.type, Constraint) or (port.variadic and port.heterogeneous):
            return []
        ports = [(p, self._port(p)) for p in range(len(self._inputs)) if p != place]
        return [
            p
            for p, other in ports
            if isinstance(other.type, Constraint) and other.type.name == port.type.name
        ]

    def _known(self, place: int) -> ElementType | None:
        """Return the element type of an operand that is a value or a tensor, as far as it is known."""
        value = self._inputs[place]
        if isinstance(value, (Tensor, SparseTensor)):
            return value.element
        type_ = self._site.type_of(value) if isinstance(value, Value) else None
        return type_.element if isinstance(type_, TensorType) and type_.element.number else None

    def _port(self, place: int) -> Port:
        return port_at(self._version.inputs, place)

    def _name(self, place: int) -> str:
        return f"{self._version}: the constant for input {self._port(place).name!r}"


def _required_outputs(version: Version) -> int:
    required = [not p.optional for p in version.outputs if not p.variadic]
    return max(1, len(required) - next((i for i, r in enumerate(reversed(required)) if r), len(required)))


@functools.cache  # a few hundred sets
def _types_of(allowed: frozenset[str]) -> tuple[ElementType, ...]:
    names = [t.removeprefix("tensor(").removesuffix(")") for t in allowed if t.startswith("tensor(")]
    return tuple(sorted(map(element, names), key=lambda e: e.number))


def _admitted(port: Port) -> tuple[ElementType, ...]:
    """Return the element types of the tensors that a port admits."""
    return _types_of(port.allowed)
