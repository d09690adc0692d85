"""Registries: sets of operators, found by domain and name."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from sabir.base import SchemaError, UnsupportedError, quote
from sabir.ir import NEWEST_IR, OperatorEntry, OperatorSet, canonical_domain, first_ir_of, newest_opset
from sabir.schema._documents import Documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sabir.ir import Function
    from sabir.schema._documents import Declaration
    from sabir.schema._operator import Operator
    from sabir.schema._version import Version

INTERNAL = "sabir.internal"
"""The domain of the operators that Sabir itself writes into models, and no file contains."""


class Rooms:
    """The operators of one domain, one module each in its packages, imported when first named.

    >>> Rooms('sabir.opsets.onnx').find('Relu').name
    'Relu'
    """

    def __init__(self, *packages: str) -> None:
        self._packages = packages
        self._files: dict[str, str] | None = None
        self._found: dict[str, Operator | None] = {}

    def find(self, name: str) -> Operator | None:
        """Return the operator of that exact name, or None."""
        if name not in self._found:
            self._found[name] = self._load(name)
        return self._found[name]

    def __iter__(self) -> Iterator[Operator]:
        """Every operator of the packages, by name; imports all of its rooms."""
        for _, module in sorted(self._modules().items()):
            yield _operator_of(module)

    def names(self) -> list[str]:
        """Return the module names as CamelCase, close to the operators' own."""
        modules = (module.rpartition(".")[2] for module in self._modules().values())
        return ["".join(part.title() for part in m.split("_")) for m in modules]

    def _load(self, name: str) -> Operator | None:
        module = self._modules().get(name.lower())
        if module is None or "_" in name:
            return None
        operator = _operator_of(module)
        return operator if operator.name == name else None

    def _modules(self) -> dict[str, str]:
        """Return the modules of the rooms by the lower-case names of their operators."""
        if self._files is None:
            self._files = {
                module.name.replace("_", ""): f"{package}.{module.name}"
                for package in self._packages
                for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
            }
        return self._files


class Registry:
    """Operators by domain and name. It is immutable: `with_operators` returns a larger one.

    `with_operator_sets` adds documents: what they declare and define comes after the operators.

    >>> from sabir.opsets import STANDARD
    >>> STANDARD.find('', 'Relu').name, STANDARD.newest_opset('ai.onnx.ml')
    ('Relu', 5)
    """

    def __init__(
        self,
        rooms: Mapping[str, Rooms],
        more: tuple[Operator, ...] = (),
        opsets: Mapping[str, int] | None = None,
        operator_sets: tuple[OperatorSet, ...] = (),
    ) -> None:
        """Take packages of operators by domain, and `more` operators; `opsets` are newest known versions.

        `operator_sets` are documents; raises SchemaError for two of the same domain and version.
        """
        self._rooms = dict(rooms)
        self._more = {(o.domain, o.name): o for o in more}
        self._opsets = _canonical(opsets or {})
        self._documents = Documents(operator_sets)

    def find(self, domain: str, name: str) -> Operator | None:
        """Return an operator, or None; `""` and `"ai.onnx"` are one domain."""
        domain = canonical_domain(domain)
        added = self._more.get((domain, name))
        if added is not None:
            return added
        rooms = self._rooms.get(domain)
        return None if rooms is None else rooms.find(name)

    def find_version(self, domain: str, name: str, opset: int | None) -> Version | None:
        """Return the version of an operator in force in `opset`, or None."""
        operator = self.find(domain, name)
        return None if operator is None or opset is None else operator.find(opset)

    @property
    def operator_sets(self) -> tuple[OperatorSet, ...]:
        """The documents that this registry knows."""
        return self._documents.all

    def function(self, domain: str, name: str, overload: str, opset: int | None) -> Function | None:
        """Return the function of a document that a call means in `opset`; None for an operator."""
        if opset is None or not self._documents.all:
            return None
        found = self._documents.function(domain, name, overload, opset)
        return None if found is None or self.find_version(domain, name, opset) is not None else found

    def declaration(self, domain: str, name: str, opset: int | None) -> Declaration | None:
        """Return what a document declares of an operator in `opset`; None for one that is implemented."""
        if opset is None or not self._documents.all:
            return None
        found = self._documents.declaration(domain, name, opset)
        return None if found is None or self.find_version(domain, name, opset) is not None else found

    def in_force(self, domain: str, name: str, opset: int | None) -> Version | Declaration | None:
        """Return the version of an operator in force in `opset`, or what a document declares; or None."""
        found = self.find_version(domain, name, opset)
        return self.declaration(domain, name, opset) if found is None else found

    def declared_names(self, domain: str, opset: int) -> list[str]:
        """Return the names of the operators that a document declares in an opset."""
        return [d.entry.name for d in self._documents.declarations(domain, opset)]

    def declared_after(self, domain: str, name: str, opset: int) -> int | None:
        """Return the first version after `opset` in which a document introduces an operator, or None."""
        return self._documents.first_after(domain, name, opset)

    def is_documented(self, function: Function) -> bool:
        """Whether a function belongs to a document, and not to a model."""
        return function in self._documents.functions

    def has_domain(self, domain: str) -> bool:
        """Whether this registry has operators of a domain."""
        return canonical_domain(domain) in self.domains

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains of which this registry has operators."""
        added = (domain for domain, _ in self._more)
        return tuple(dict.fromkeys([*self._rooms, *added, *self._documents.domains]))

    @property
    def listed_domains(self) -> str:
        """The domains that messages name: those that a model from outside may import."""
        return ", ".join(domain or "ai.onnx" for domain in self.domains if domain != INTERNAL)

    def newest_opset(self, domain: str) -> int | None:
        """Return the newest known version of a domain, or None for one whose versions have no bound.

        It is the one that `with_operators` declared, or else, for a standard domain, the last released, or
        for another one the newest of its documents and operators, if it has documents.
        """
        domain = canonical_domain(domain)
        released, documented = newest_opset(domain), self._documents.newest(domain)
        declared = self._opsets.get(domain, released)
        if documented is None or released is not None:
            return declared
        introduced = (o.versions[-1].since for (d, _), o in self._more.items() if d == domain)
        return max(documented, declared or 0, *introduced)

    def names(self, domain: str) -> list[str]:
        """Return the names of a domain's operators, as far as they are known without importing rooms."""
        rooms = self._rooms.get(canonical_domain(domain))
        added = [name for d, name in self._more if d == domain]
        return [*added, *(rooms.names() if rooms else ()), *self._documents.names(domain)]

    def with_operators(self, *operators: Operator, opsets: Mapping[str, int] | None = None) -> Registry:
        """Return a registry that also has these operators, which replace its own of the same name.

        `opsets` declares the newest version of their domains. A model that imports a newer one is refused;
        without a declaration any version of another domain than the standard's is accepted.
        """
        more = (*self._more.values(), *operators)
        merged = {**self._opsets, **_canonical(opsets or {})}
        return Registry(self._rooms, more, merged, self.operator_sets)

    def with_operator_sets(self, *operator_sets: OperatorSet) -> Registry:
        """Return a registry that also knows the operators of these documents, which must not be edited later.

        A call of an operator that a document defines by a function means that function; one that it only
        declares has no meaning. Operators of the registry come first: a document replaces none. Raises
        SchemaError for two documents of one domain and version, and for functions that call one another in
        a cycle.
        """
        from sabir.schema._expansion import check_recursion  # ruff: ignore[import-outside-top-level]  as below
        from sabir.schema._scope import Scope  # ruff: ignore[import-outside-top-level]  as below

        new = Registry(
            self._rooms, tuple(self._more.values()), self._opsets, (*self.operator_sets, *operator_sets)
        )
        check_recursion((f for s in operator_sets for f in s.functions), Scope(new, {}))
        return new

    def operator_set(self, domain: str = "", version: int | None = None) -> OperatorSet:
        """Return the operator set of a domain in a version, by default the newest, as a document.

        It lists the operators in force, without those that were removed, and what documents of this registry
        declare and define beside them. An operator of the registry has an entry and no function: what its
        body does may depend on the types of the call.

        Raises SchemaError for a domain without operators, or without a bound on its versions where `version`
        is None, and for a version below 1; UnsupportedError for one above the newest.

        >>> from sabir.opsets import STANDARD
        >>> STANDARD.operator_set('ai.onnx.ml', 3).entry('TreeEnsembleClassifier').since
        3
        """
        domain = canonical_domain(domain)
        version = self._published(domain, version)
        entries = [
            OperatorEntry(operator.name, found.since, found.status, operator.summary)
            for operator in self.of_domain(domain)
            if (found := operator.find(version)) is not None and not found.removed and not found.unpublished
        ]
        implemented = {entry.name for entry in entries}
        declared = [d.entry for d in self._documents.declarations(domain, version)]
        entries += [entry for entry in declared if entry.name not in implemented]
        functions = [f for f in self._documents.defined(domain, version) if f.name not in implemented]
        return OperatorSet(
            domain,
            version,
            sorted(entries, key=lambda entry: entry.name),
            functions,
            ir_version=first_ir_of(domain, version) or NEWEST_IR,
        )

    def _published(self, domain: str, version: int | None) -> int:
        """Return a version of a domain, by default the newest; raises as `operator_set` does."""
        shown = quote(domain or "ai.onnx")
        if domain not in self.domains:
            known = f"known are those of {self.listed_domains}"
            raise SchemaError(f"no operators of domain {shown} are known; {known}")
        newest = self.newest_opset(domain)
        if version is None and newest is None:
            raise SchemaError(f"the versions of {shown} have no bound; state a version")
        chosen = newest if version is None else version
        if chosen is None or chosen < 1:
            raise SchemaError(f"a version of an operator set is at least 1, and not {version}")
        if newest is not None and chosen > newest:
            raise UnsupportedError(
                f"opset {chosen} of {shown} is not known; the newest known one is {newest}"
            )
        return chosen

    def of_domain(self, domain: str) -> Iterator[Operator]:
        """Every operator of a domain; imports all of its rooms."""
        domain = canonical_domain(domain)
        added = {name: operator for (d, name), operator in self._more.items() if d == domain}
        yield from added.values()
        for operator in self._rooms.get(domain, ()):
            if operator.name not in added:
                yield operator

    def __iter__(self) -> Iterator[Operator]:
        """Every operator; imports every room."""
        yield from self._more.values()
        for rooms in dict.fromkeys(self._rooms.values()):  # two domains may have the same
            yield from rooms


def _canonical(opsets: Mapping[str, int]) -> dict[str, int]:
    return {canonical_domain(domain): version for domain, version in opsets.items()}


def _operator_of(module: str) -> Operator:
    from sabir.schema._operator import Operator  # ruff: ignore[import-outside-top-level]  the first room loads it

    found = [v for v in vars(importlib.import_module(module)).values() if isinstance(v, Operator)]
    if len(found) != 1:
        raise TypeError(f"{module} must define one Operator, and defines {len(found)}")
    return found[0]
