"""Operators and versions by their notation: `Relu`, `ai.onnx.Relu`, `ai.onnx.ml.TreeEnsemble:5`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sabir.base import SchemaError, quote, suggest
from sabir.ir import canonical_domain, newest_opset
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.schema import Operator, Registry, Version

_NOTATION = re.compile(r"(?:(?P<domain>.+)\.)?(?P<name>[^.:]+)(?::(?P<since>[0-9]{1,9}))?", re.ASCII)


def find_version(
    asked: str, *, opset: int | None = None, domain: str | None = None, registry: Registry = STANDARD
) -> Version:
    """Return the version of an operator in the notation of the standard, `domain.op_type:since_version`.

    The domain may be left out where `domain` names it, or where only one domain has the operator. Without
    `since_version` it is the version in force in `opset`, by default the newest. Raises SchemaError.

    >>> find_version('ai.onnx.Relu:6').since, find_version('Relu', opset=13).since
    (6, 13)
    """
    parts = _NOTATION.fullmatch(asked)
    if parts is None:
        raise SchemaError(f"{quote(asked)} names no operator; write Relu, ai.onnx.Relu or ai.onnx.Relu:6")
    if (
        parts["domain"]
        and domain is not None
        and canonical_domain(parts["domain"]) != canonical_domain(domain)
    ):
        raise SchemaError(
            f"{asked} is in the domain {parts['domain']}, not in {domain}; name the domain once"
        )
    operator = _find(parts["name"], parts["domain"] or domain, operators_of(registry))
    if parts["since"] is None:
        return operator.versions[-1] if opset is None else version_at(operator, opset)
    if opset is not None:
        raise SchemaError(f"{asked} already states the version; state no opset beside it")
    return _version_since(operator, int(parts["since"]))


def version_at(operator: Operator, opset: int) -> Version:
    """Return the version of an operator in force in `opset` of its domain; raises SchemaError without one."""
    newest = _newest([operator])
    if opset > newest:
        raise SchemaError(
            f"there is no opset {opset} of {_shown(operator.domain)}; the newest opset is {newest}"
        )
    version = operator.find(opset)
    if version is None:
        first = operator.versions[0].since
        raise SchemaError(f"{operator.name} came with opset {first}; opset {opset} has no {operator.name}")
    return version


def inventory(
    opset: int, *, domain: str | None = None, registry: Registry = STANDARD
) -> dict[str, list[Version]]:
    """Return the version in force of each operator, by domain, in every domain with an opset of this number.

    `domain` is the only domain to look in. Raises SchemaError where there is no such opset.

    >>> len(inventory(1, domain='ai.onnx.ml')['ai.onnx.ml'])
    18
    """
    domains = domains_of(domain, registry)
    newest = {d: _newest(operators) for d, operators in domains.items()}
    if opset > max(newest.values()):
        known = ", ".join(f"{n} of {_shown(d)}" for d, n in newest.items())
        raise SchemaError(f"there is no opset {opset}; the newest opset is {known}")
    return {
        d: [v for o in operators if (v := o.find(opset)) is not None]
        for d, operators in domains.items()
        if opset <= newest[d]
    }


def operators_of(registry: Registry = STANDARD) -> dict[str, list[Operator]]:
    """Return the operators by domain, the default one first, each sorted by name.

    >>> list(operators_of())[:3]
    ['', 'ai.onnx.contrib', 'ai.onnx.ml']
    """
    found: dict[str, list[Operator]] = {}
    for operator in sorted(registry, key=lambda o: (o.domain, o.name)):
        found.setdefault(operator.domain, []).append(operator)
    return found


def domains_of(domain: str | None = None, registry: Registry = STANDARD) -> dict[str, list[Operator]]:
    """Return the operators of one domain, or of all, by domain; raises SchemaError for an unknown domain.

    >>> {domain: len(operators) for domain, operators in domains_of('ai.onnx.ml').items()}
    {'ai.onnx.ml': 19}
    """
    domains = operators_of(registry)
    if domain is None:
        return domains
    if canonical_domain(domain) not in domains:
        raise SchemaError(_unknown_domain(domain, domains))
    return {canonical_domain(domain): domains[canonical_domain(domain)]}


def _find(name: str, domain: str | None, domains: Mapping[str, list[Operator]]) -> Operator:
    if domain is not None and canonical_domain(domain) not in domains:
        raise SchemaError(_unknown_domain(domain, domains))
    named = [o for found in domains.values() for o in found if o.name == name]
    inside = [o for o in named if domain is None or o.domain == canonical_domain(domain)]
    if inside:
        return inside[0]
    if named:
        raise SchemaError(
            f"{_shown(canonical_domain(domain or ''))} has no {name}; {_shown(named[0].domain)} has one"
        )
    searched = domains.values() if domain is None else [domains[canonical_domain(domain)]]
    near = suggest(name, [o.name for found in searched for o in found])
    where = "" if domain is None else f" in {_shown(canonical_domain(domain))}"
    raise SchemaError(f"there is no operator {quote(name)}{where}{near or '; `sabir op` lists all'}")


def _version_since(operator: Operator, since: int) -> Version:
    versions = {v.since: v for v in operator.versions}
    if since in versions:
        return versions[since]
    known = ", ".join(map(str, versions))
    in_force = operator.find(since) if since <= _newest([operator]) else None
    hint = f"; opset {since} has version {in_force.since}" if in_force else ""
    raise SchemaError(
        f"{_shown(operator.domain)}.{operator.name} has the versions {known}, not {since}{hint}"
    )


def _newest(operators: list[Operator]) -> int:
    """Return the newest opset of the operators' domain: the newest release, or else their newest version."""
    return newest_opset(operators[0].domain) or max(o.versions[-1].since for o in operators)


def _unknown_domain(domain: str, domains: Mapping[str, list[Operator]]) -> str:
    known = [_shown(d) for d in domains]
    near = suggest(domain, known) or f"; the domains are {', '.join(known)}"
    return f"there is no domain {quote(domain)}{near}"


def _shown(domain: str) -> str:
    return domain or "ai.onnx"
