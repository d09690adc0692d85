"""The boundaries between operator set versions, and how the calls of an operator cross each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sabir.ir import Attribute
from sabir.schema import Binding, Unconvertible, check_ports, is_derived, kept_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.schema import Operator, Version


@dataclass(frozen=True)
class Boundary:
    """A boundary between two versions of an operator, in one direction.

    Calls of `source` become calls of `target`. It is None where the older set has no such operator, or only a
    deprecated version: then `adapter` writes the call out as operators that the older set has. Otherwise it
    rewrites the call, or is None where the call itself is valid in both versions. `refusal` says why no call
    can cross.
    """

    source: Version
    target: Version | None
    adapter: Binding | None = None
    refusal: str = ""

    @cached_property
    def is_free(self) -> bool:
        """Whether every valid call crosses as it is: to a version that only admits more."""
        source, target = self.source, self.target
        if self.refusal or self.adapter is not None or target is None or target.since < source.since:
            return False
        known = target.formal.attributes
        return all(
            a.name in known and known[a.name].values == a.values and not known[a.name].required
            for a in source.attributes
        )

    def same_call(
        self, attributes: Mapping[str, Attribute], signatures: Sequence[str | None], outputs: int
    ) -> dict[str, Attribute]:
        """Return the attributes of the same call in the target version; raises Unconvertible.

        `signatures` are the types of the operands, as type strings.
        """
        source, target = self.source, self.target
        if target is None:
            raise Unconvertible(self.refusal)
        kept = kept_attributes(source, target, attributes)
        if target.since < source.since:
            check_ports(target, signatures, outputs)
        for formal in target.attributes:  # the older version may not have had the default yet
            own = source.formal.attributes.get(formal.name)
            if formal.required and formal.name not in kept and own is not None and own.default is not None:
                kept[own.name] = Attribute(own.name, own.type, own.default)
        return kept


def boundary_of(operator: Operator, since: int, *, downward: bool) -> Boundary:
    """Return the boundary below the version of an operator that came with opset `since`."""
    newer = operator.at(since)
    return _downward(newer) if downward else _upward(newer)


def _upward(newer: Version) -> Boundary:
    older = newer.previous
    if older is None:
        raise ValueError(f"no call can come from below {newer}, the first version")
    adapter = newer.find("upgrade")
    if adapter is None:
        removed = f"opset {newer.since} has removed it" if newer.removed else ""
        return Boundary(older, newer, refusal=_reasons(newer.why_absent("upgrade"), removed))
    return Boundary(older, newer, _written(older, adapter))


def _downward(newer: Version) -> Boundary:
    older = newer.previous
    if older is None or (older.deprecated and newer.find("body") is not None):
        expression = (newer.find("downgrade") if older is None else None) or newer.find("body")
        if expression is not None:
            return Boundary(newer, None, Binding(newer.formal, expression))
        why = newer.why_absent("downgrade") or "it has no function body"
        return Boundary(newer, None, refusal=f"opset {newer.since - 1} has no such operator, and {why}")
    adapter = newer.find("downgrade")
    if adapter is None:
        return Boundary(newer, older, refusal=_reasons(newer.why_absent("downgrade")))
    return Boundary(newer, older, _written(newer, adapter))


def _written(source: Version, adapter: Callable[..., Any]) -> Binding | None:
    return None if is_derived(adapter) else Binding(source.formal, adapter)


def _reasons(*reasons: str | None) -> str:
    return "; ".join(filter(None, reasons)) or "no adapter is known between these versions"
