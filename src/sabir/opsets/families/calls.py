"""Which attributes an operator has in the opset of a graph under construction, by its own room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from sabir.ir import Builder


def has_attribute(b: Builder, name: str, attribute: str) -> bool:
    """Return whether an operator of the default domain has an attribute in the opset of the builder."""
    operator = STANDARD.find("", name)
    return operator is not None and any(a.name == attribute for a in operator.at(b.opset).attributes)
