"""Imports of operator sets in a header, where one domain may be imported several times.

A model has the imports that apply; the others are in its residue. A text lists them all, in the order of the
file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.ir import Residue, binding_places, bound_opsets, canonical_domain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FIELD = "opset_import"


def bind_imports(
    listed: Sequence[tuple[str, int]], message_class: Any, residue: Residue
) -> tuple[dict[str, int], Residue]:
    """Return the imports that apply, and the residue with the others added.

    `message_class` is the class of the message that has the imports.
    """
    applying = frozenset(binding_places(listed))
    second = [place for place in range(len(listed)) if place not in applying]
    opsets = {domain: version for place, (domain, version) in enumerate(listed) if place in applying}
    if not second:
        return opsets, residue
    message = message_class()
    for place in second:
        _spell(message.opset_import.add(), *listed[place], residue)
    extended = residue._replace(
        wire=residue.wire + message.SerializeToString(),
        repeated=(*residue.repeated, *(listed[place][0] for place in second)),
        places=(*residue.places, *((_FIELD, place) for place in second)),
    )
    return opsets, extended


def list_imports(
    opsets: Mapping[str, int], residue: Residue | None, message_class: Any
) -> tuple[list[tuple[str, int]], Residue | None]:
    """Return every import in the file's order, and the residue without those.

    An import that the list cannot represent stays in the residue. One that would apply since an edit, with
    another version, is dropped.
    """
    listed = list(opsets.items())
    if residue is None or not any(field == _FIELD for field, _ in residue.places):
        return listed, residue
    message = message_class.FromString(residue.wire)
    second, bound = list(message.opset_import), bound_opsets(opsets)
    kept = [e for e in second if canonical_domain(e.domain) in bound]
    kept = [e for e in kept if e.version <= bound[canonical_domain(e.domain)]]
    if not all(e == _spell(type(e)(), e.domain, e.version, residue) for e in kept):
        return listed, residue
    places = sorted(place for field, place in residue.places if field == _FIELD)
    ends = [len(listed)] * len(kept)  # where one is dropped, the places no longer fit
    for place, entry in zip(places if len(kept) == len(places) else ends, kept, strict=True):
        listed.insert(place, (entry.domain, entry.version))
    del message.opset_import[:]
    rest = residue._replace(
        wire=message.SerializeToString(),
        repeated=_without(residue.repeated, [e.domain for e in second]),
        places=tuple(p for p in residue.places if p[0] != _FIELD),
    )
    return listed, rest if any(rest) else None


def _spell(entry: Any, domain: str, version: int, residue: Residue) -> Any:
    """Fill an import: the default domain is left out where the file leaves it out."""
    entry.version = version
    if domain or _FIELD not in residue.absent:
        entry.domain = domain
    return entry


def _without(names: Sequence[str], removed: Sequence[str]) -> tuple[str, ...]:
    rest = list(names)
    for name in removed:
        if name in rest:
            rest.remove(name)
    return tuple(rest)
