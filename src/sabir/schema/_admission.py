"""Whether the types of a call's operands are admitted: one statement for inference, evaluation and adapters.

Types are compared as type strings, `tensor(float)`. A `?` in one is a part that is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.schema._ports import port_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.schema._ports import Port
    from sabir.schema._version import Version

UNKNOWN = "?"
_MOST_SHOWN = 6  # types in a message; an operator may admit 70


def admits(port: Port, signature: str, *, unwrapped: bool = False) -> bool:
    """Return whether a port takes a type; one with an unknown part is taken where it may be admitted.

    With `unwrapped` a port for optionals also takes what an optional contains, as values of a run have it.
    """
    allowed = port.allowed | port.tolerated if port.tolerated else port.allowed
    if UNKNOWN not in signature:
        return signature in allowed or (unwrapped and f"optional({signature})" in allowed)
    known = signature.partition(UNKNOWN)[0]
    return any(a.removeprefix("optional(" if unwrapped else "").startswith(known) for a in allowed)


def operand_mismatch(
    version: Version, signatures: Sequence[str | None], *, unwrapped: bool = False
) -> str | None:
    """Return a message about the first operand whose type its port does not admit, None where all are.

    Ports that share a constraint take one type in a call. An operand whose type is None is not checked.
    """
    bound: dict[str, tuple[str, str]] = {}
    for place, signature in enumerate(signatures if version.inputs else ()):
        if signature is None:
            continue
        port = port_at(version.inputs, place)
        if not admits(port, signature, unwrapped=unwrapped):
            return (
                f"{version} does not admit {signature} for {port.name!r}; it admits"
                f" {_shown(port.allowed, signature, version)}"
            )
        if isinstance(port.type, str) or port.heterogeneous or UNKNOWN in signature:
            continue
        first, other = bound.setdefault(port.type.name, (signature, port.name))
        if first != signature:
            ports = f"all of {other!r}" if other == port.name else f"{other!r} and {port.name!r}"
            return f"{version} takes one type for {ports}; it gets {first} and {signature}"
    return None


def _shown(allowed: frozenset[str], wrong: str, version: Version) -> str:
    """Return some of the admitted types, those of the same kind as the wrong one first."""
    kind = wrong.split("(", 1)[0]
    listed = sorted(allowed, key=lambda t: (t.split("(", 1)[0] != kind, not t.startswith("tensor("), t))
    if len(listed) <= _MOST_SHOWN + 1:
        return ", ".join(listed)
    domain = f"{version.operator.domain}." if version.operator.domain else ""
    page = f"sabir op {domain}{version.operator.name} --opset {version.since}"
    return f"{', '.join(listed[:_MOST_SHOWN])} and {len(listed) - _MOST_SHOWN} more; see `{page}`"
