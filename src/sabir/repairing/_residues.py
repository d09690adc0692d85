"""Repairs of residues: second entries that a file contains and the model objects do not represent."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sabir.base import Location, quote
from sabir.ir import bound_opsets, canonical_domain
from sabir.repairing._repair import Repair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Function, Residue

_DEFAULT_DOMAIN = "ai.onnx"


class ResidueEditor:
    """The residue of one object, parsed into a message so that entries can be removed."""

    def __init__(
        self, residue: Residue | None, message_class: Any, where: Location, selected: frozenset[str]
    ) -> None:
        self._residue, self._where, self._selected = residue, where, selected
        self.message = message_class.FromString(b"" if residue is None else residue.wire)

    @property
    def residue(self) -> Residue | None:
        """The residue without the removed entries; None if nothing is left."""
        if self._residue is None:
            return None
        wire = self.message.SerializeToString()
        if wire == self._residue.wire:
            return self._residue
        placed = Counter(field for field, _ in self._residue.places)
        whole = {field for field, count in placed.items() if len(getattr(self.message, field)) == count}
        # in a list that lost entries, the recorded places are those of other entries now
        places = tuple(p for p in self._residue.places if p[0] in whole)
        changed = self._residue._replace(wire=wire, repeated=(), places=places)
        return changed if any(changed) else None

    def drop_metadata(self, kept: dict[str, str] | None, rule: str) -> Iterator[Repair]:
        """Drop metadata whose key is among the `kept` ones, or repeated."""
        if rule in self._selected:
            yield from drop_pairs(self.message.metadata_props, set(kept or ()), rule, self._where)

    def drop_imports(self, opsets: dict[str, int]) -> Iterator[Repair]:
        """Drop all imports of a domain except the one that applies, if their versions differ."""
        if "MODEL004" not in self._selected:
            return
        applying, field = bound_opsets(opsets), self.message.opset_import
        imports = [*opsets.items(), *((entry.domain, entry.version) for entry in field)]
        domains = [(canonical_domain(d), v) for d, v in imports]
        differing = {d for d, v in domains if d in applying and applying[d] != v}
        if not differing:
            return
        dropped = [(e.domain, e.version) for e in field if canonical_domain(e.domain) in differing]
        kept = [e for e in field if canonical_domain(e.domain) not in differing]
        del field[:]
        field.extend(kept)
        for domain, version in tuple(opsets.items()):
            name = canonical_domain(domain)
            first = next(d for d, v in opsets.items() if canonical_domain(d) == name and v == applying[name])
            if name in differing and domain != first:
                dropped.append((domain, version))
                del opsets[domain]
        if self._residue is not None:  # these entries are recorded by place, and the places have changed
            entries = tuple(e for e in self._residue.entries if e[0] != "opset_import")
            self._residue = self._residue._replace(entries=entries)
        for domain, version in dropped:
            message = f"dropped the import of {quote(domain or _DEFAULT_DOMAIN)} in version {version}"
            where = self._where.at("opset_import", name=domain or _DEFAULT_DOMAIN)
            yield Repair(
                "MODEL004", f"{message}; version {applying[canonical_domain(domain)]} remains", where
            )

    def drop_function_attributes(self, function: Function) -> Iterator[Repair]:
        """Drop second declarations of a function's attributes; a declaration with a default is kept."""
        for declarations in (self.message.attribute, self.message.attribute_proto):
            for place in reversed(range(len(declarations))):
                entry = declarations[place]
                name = entry if isinstance(entry, str) else entry.name
                has_default = function.attributes.get(name) is not None
                rule = "FUNC005" if has_default else "FUNC004"
                if rule in self._selected and name in function.attributes:
                    del declarations[place]
                    message = f"dropped the second declaration of the attribute {quote(name)}"
                    stays = "; the one with a default stays" if has_default else ""
                    yield Repair(rule, message + stays, self._where.at("attribute", name=name))


def drop_pairs(pairs: Any, keys: set[str], rule: str, where: Location) -> Iterator[Repair]:
    """Drop the pairs of a message whose key is in `keys`, or repeated; adds the other keys to `keys`."""
    dropped: list[int] = []
    for place, pair in enumerate(pairs):
        if pair.key in keys:
            dropped.append(place)
            message = f"dropped the second value of {quote(pair.key)}, {quote(pair.value)}"
            yield Repair(rule, message, where.at("metadata", name=pair.key))
        keys.add(pair.key)
    for place in reversed(dropped):
        del pairs[place]
