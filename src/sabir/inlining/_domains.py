"""Calls of operators of other domains, written out in operators of the standard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.base import ConversionError, Location, Refusal, counted
from sabir.conversion import convert
from sabir.inlining._engine import inline_in_place
from sabir.inlining._operators import InlineOperators
from sabir.ir import Node, canonical_domain, places
from sabir.opsets import STANDARD
from sabir.rewriting import Rewriter, run_passes
from sabir.schema import Scope, Unconvertible, Version

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from sabir.ir import Model
    from sabir.schema import Registry

STANDARD_DOMAINS = frozenset({"", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"})


@dataclass(frozen=True)
class Inlining:
    """A model without calls of some domains: `replaced` has the number of calls of each operator version.

    `opset` is the version of the default domain that the bodies needed, where the model had an older one.

    >>> model = sabir.parse('''<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]>
    ... g (float[N] x) => (float[N] y) { y = com.microsoft.QuickGelu (x) }''')
    >>> inline_domains(model).opset
    18
    """

    model: Model
    replaced: dict[str, int] = field(default_factory=dict[str, int])
    opset: int | None = None


def inline_domains(
    model: Model, domains: Collection[str] | None = None, *, registry: Registry = STANDARD
) -> Inlining:
    """Return a copy of a model in which operators of other domains are replaced by operators of the standard.

    `domains` are those to replace, by default all but the domains of the standard; their imports are dropped.
    Calls of functions of the model are inlined first where such a domain has any. A model whose opset is
    older than the bodies need is converted to it. Raises ConversionError, with every call that has no body
    and the reason, SchemaError for invalid calls, LimitError.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
    ... g (float[N] x) => (float[N] y) { y = com.microsoft.QuickGelu <alpha = 1.0> (x) }''')
    >>> found = inline_domains(model)
    >>> [node.op for node in found.model.graph], found.replaced
    (['Mul', 'Sigmoid', 'Mul'], {'com.microsoft.QuickGelu:1': 1})
    """
    Scope.of(model, registry)  # raises for a version that is not known
    copy = model.clone()
    if any(_is_meant(function.domain, domains) for function in copy.functions):
        inline_in_place(copy, registry=registry)
    needed = max((v.operator.body_opset for _, v in _called(copy, domains, registry)), default=1)
    opset = None
    if 0 < (copy.opset("") or 0) < needed:
        copy, opset = convert(copy, needed, registry=registry), needed
    replaced: dict[str, int] = {}
    names: dict[str, set[str]] = {}
    for _, version in _called(copy, domains, registry):  # the conversion may have made released calls
        replaced[str(version)] = replaced.get(str(version), 0) + 1
        names.setdefault(canonical_domain(version.operator.domain), set()).add(version.operator.name)
    run_passes(
        copy, [InlineOperators(registry, frozenset(n), domains=frozenset({d})) for d, n in names.items()]
    )
    left = list(_left(copy, domains, registry))
    if left:
        count = counted(len(left), "call")
        raise ConversionError(f"{count} cannot be written in operators of the standard:", left)
    used = {canonical_domain(place.object.domain) for place in places(copy, Node)}
    for domain in [d for d in copy.opsets if _is_meant(d, domains) and canonical_domain(d) not in used]:
        del copy.opsets[domain]
    return Inlining(copy, replaced, opset)


def _is_meant(domain: str, domains: Collection[str] | None) -> bool:
    if domains is None:
        return canonical_domain(domain) not in STANDARD_DOMAINS
    return canonical_domain(domain) in {canonical_domain(d) for d in domains}


def _called(
    model: Model, domains: Collection[str] | None, registry: Registry
) -> Iterator[tuple[Node, Version]]:
    """Yield the calls of operators that are meant: of the domains, and of versions that are unpublished."""
    for place in places(model, Node):
        version = registry.find_version(place.object.domain, place.object.op, _opset(model, place.object))
        if version is not None and (
            _is_meant(place.object.domain, domains) or (domains is None and version.unpublished)
        ):
            yield place.object, version


def _opset(model: Model, node: Node) -> int | None:
    return model.opset(canonical_domain(node.domain))


def _left(model: Model, domains: Collection[str] | None, registry: Registry) -> Iterator[Refusal]:
    """Yield the calls that were not replaced, with the reason."""
    where = {place.object: place.location for place in places(model, Node)}
    for node, version in _called(model, domains, registry):
        yield Refusal(where.get(node, Location()), str(version), _reason(model, node, version, registry))
    for place in places(model, Node):
        node = place.object
        known = registry.find_version(node.domain, node.op, _opset(model, node))
        if known is None and _is_meant(node.domain, domains):
            label = f"{node.domain}.{node.op}"
            yield Refusal(place.location, label, "it is not an operator that Sabir knows")


def _reason(model: Model, node: Node, version: Version, registry: Registry) -> str:
    if version.find("body") is None:
        return version.why_absent("body") or "the standard's operators do not express it"
    try:
        Rewriter(model, registry=registry).expand(node, version, "body")
    except Unconvertible as reason:
        return str(reason)
    return "it calls itself"
