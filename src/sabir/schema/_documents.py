"""Documents of operator sets: which of them serves an import, and what it declares there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import SchemaError
from sabir.ir import canonical_domain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Function, OperatorEntry, OperatorSet


class Declaration(NamedTuple):
    """An entry of the operator set that serves an import; `overloads` are those of its functions.

    >>> from sabir.ir import OperatorEntry, OperatorSet
    >>> from sabir.opsets import STANDARD
    >>> registry = STANDARD.with_operator_sets(OperatorSet('com.acme', 3, [OperatorEntry('FastConv', 2)]))
    >>> declaration = registry.declaration('com.acme', 'FastConv', 3)
    >>> str(declaration), declaration.overloads
    ('com.acme.FastConv:2', ())
    """

    entry: OperatorEntry
    operator_set: OperatorSet
    overloads: tuple[str, ...]

    @property
    def since(self) -> int:
        """The version of the operator set that introduced the operator."""
        return self.entry.since

    def __str__(self) -> str:
        domain = canonical_domain(self.operator_set.domain)
        return f"{domain or 'ai.onnx'}.{self.entry.name}:{self.entry.since}"


class _Served(NamedTuple):
    """What one document means under an import: its entries by name, its functions by name and overload."""

    declarations: dict[str, Declaration]
    functions: dict[tuple[str, str], Function]


class Documents:
    """The documents of a registry.

    The document of exactly the imported version serves an import. Without it the one of the smallest version
    above serves, with the operators that it had at the imported version: an operator that changed since is
    not known there. For an import above all documents, which `Scope` refuses unless the caller wants the
    newest known version, the newest serves. A function without an entry has no version, and is not known
    before that of its document.
    """

    def __init__(self, operator_sets: Iterable[OperatorSet] = ()) -> None:
        """Take the documents; raises SchemaError where two have the same domain and version."""
        self.all = tuple(operator_sets)
        self._by_domain: dict[str, dict[int, OperatorSet]] = {}
        self._served: dict[tuple[str, int], _Served | None] = {}
        for operator_set in self.all:
            versions = self._by_domain.setdefault(canonical_domain(operator_set.domain), {})
            if versions.setdefault(operator_set.version, operator_set) is not operator_set:
                raise SchemaError(
                    f"two documents are the operator set {operator_set.label}; pass one of them"
                )
        self._functions = frozenset(f for operator_set in self.all for f in operator_set.functions)

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains of the documents."""
        return tuple(self._by_domain)

    @property
    def functions(self) -> frozenset[Function]:
        """The functions of all documents."""
        return self._functions

    def newest(self, domain: str) -> int | None:
        """Return the newest version of a domain that a document has, or None."""
        return max(self._by_domain.get(canonical_domain(domain), ()), default=None)

    def names(self, domain: str) -> list[str]:
        """Return the names that the documents of a domain declare or define."""
        sets = self._by_domain.get(canonical_domain(domain), {}).values()
        names = (o.name for s in sets for o in (*s.operators, *s.functions))
        return list(dict.fromkeys(names))

    def declaration(self, domain: str, name: str, opset: int) -> Declaration | None:
        """Return the entry of an operator that applies in an opset, or None."""
        served = self._serving(domain, opset)
        return None if served is None else served.declarations.get(name)

    def function(self, domain: str, name: str, overload: str, opset: int) -> Function | None:
        """Return the function of an operator that applies in an opset, or None."""
        served = self._serving(domain, opset)
        return None if served is None else served.functions.get((name, overload))

    def declarations(self, domain: str, opset: int) -> list[Declaration]:
        """Return the entries that apply in an opset."""
        served = self._serving(domain, opset)
        return [] if served is None else list(served.declarations.values())

    def defined(self, domain: str, opset: int) -> list[Function]:
        """Return the functions that apply in an opset."""
        served = self._serving(domain, opset)
        return [] if served is None else list(served.functions.values())

    def first_after(self, domain: str, name: str, opset: int) -> int | None:
        """Return the first version after an opset that introduced an operator of this name, or None."""
        sets = self._by_domain.get(canonical_domain(domain), {}).values()
        later = (e.since for s in sets for e in s.operators if e.name == name and e.since > opset)
        return min(later, default=None)

    def _serving(self, domain: str, opset: int) -> _Served | None:
        key = canonical_domain(domain), opset
        if key not in self._served:
            self._served[key] = self._found(*key)
        return self._served[key]

    def _found(self, domain: str, opset: int) -> _Served | None:
        versions = self._by_domain.get(domain, {})
        if not versions:
            return None
        version = min((v for v in versions if v >= opset), default=max(versions))
        operator_set = versions[version]
        own = [f for f in operator_set.functions if canonical_domain(f.domain) == domain]
        overloads: dict[str, list[str]] = {}
        for function in own:
            overloads.setdefault(function.name, []).append(function.overload)
        declarations = {
            e.name: Declaration(e, operator_set, tuple(overloads.get(e.name, ())))
            for e in sorted(operator_set.operators, key=lambda e: e.since)
            if e.since <= opset
        }
        listed = {e.name for e in operator_set.operators}
        functions = {
            (f.name, f.overload): f
            for f in own
            if f.name in declarations or (f.name not in listed and version <= opset)
        }
        return _Served(declarations, functions)
