"""The operator versions that a model references, and which of them the operator sets of another one lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import bound_opsets, canonical_domain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Model
    from sabir.schema import Registry


def missing_operators(old: Model, new: Model, registry: Registry) -> Iterator[str]:
    """Yield a sentence for each operator of a new model that the imports of an old one mean otherwise.

    The version of an operator that the registry does not know is the import of its domain.
    """
    imports: dict[str, set[int]] = {}
    for opsets in (bound_opsets(old.opsets, old.opset()), *(bound_opsets(f.opsets) for f in old.functions)):
        for domain, version in opsets.items():
            imports.setdefault(domain, set()).add(version)
    for domain, op, imported in _references(new):
        version = version_in(registry, domain, op, imported)
        known = {version_in(registry, domain, op, number) for number in imports.get(domain, ())}
        if version not in known:
            have = (
                ", ".join(versioned(domain, op, v) for v in sorted(v for v in known if v is not None))
                or "none"
            )
            called = versioned(domain, op, version)
            yield f"opset_import: {called} is called; the imports of the old model have {have}"


def _references(model: Model) -> dict[tuple[str, str, int | None], None]:
    """Return the operators that nodes call, with the imports that apply; functions of the model are none."""
    functions = model.functions_by_key()
    main = bound_opsets(model.opsets, model.opset())
    roots = [(model.graph, main), *((f.graph, bound_opsets(f.opsets)) for f in functions.values())]
    found: dict[tuple[str, str, int | None], None] = {}
    for root, imports in roots:
        for node in root.all_nodes():
            domain = canonical_domain(node.domain)
            if (domain, node.op, node.overload) not in functions:
                found[domain, node.op, imports.get(domain)] = None
    return found


def version_in(registry: Registry, domain: str, op: str, imported: int | None) -> int | None:
    """Return the version of an operator in an operator set; that of the set if the operator is not known.

    None where the operator set does not have it, or the domain is not imported.
    """
    if imported is None:
        return None
    found = registry.in_force(domain, op, imported)
    if found is not None:
        return found.since
    operator, later = registry.find(domain, op), registry.declared_after(domain, op, imported)
    return imported if operator is None and later is None else None


def versioned(domain: str, op: str, version: int | None) -> str:
    """Return an operator version as the standard writes it: `Relu:14`, `com.acme.FastConv:3`."""
    label = f"{domain}.{op}" if domain else op
    return label if version is None else f"{label}:{version}"
