"""Imports of operator sets: which version of each domain applies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def canonical_domain(domain: str) -> str:
    """Return the canonical name of a domain: `ai.onnx` is the empty domain.

    >>> canonical_domain('ai.onnx')
    ''
    """
    return "" if domain == "ai.onnx" else domain


def find_opset(opsets: Mapping[str, int], domain: str) -> int | None:
    """Return the import of a domain that applies, under either of its names, or None."""
    return bound_opsets(opsets).get(canonical_domain(domain))


def bound_opsets(opsets: Mapping[str, int], default: int | None = None) -> dict[str, int]:
    """Return the import that applies for each domain, by its canonical name: the highest.

    `default` is the version of the default domain where `opsets` imports none.
    """
    found: dict[str, int] = {}
    for domain, version in opsets.items():
        name = canonical_domain(domain)
        found[name] = max(version, found.get(name, version))
    if default is not None:
        found.setdefault("", default)
    return found


def binding_places(imports: Sequence[tuple[str, int]]) -> list[int]:
    """Return the positions of the imports that apply: for each spelling of a domain the highest.

    Of equal ones the first applies.
    """
    best: dict[str, int] = {}
    for place, (domain, version) in enumerate(imports):
        if version > imports[best.setdefault(domain, place)][1]:
            best[domain] = place
    return sorted(best.values())
