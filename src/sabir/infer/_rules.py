"""Which rule of the checker an error of inference breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import (
    AttributeValueError,
    ExternalDataError,
    SchemaError,
    UnsupportedError,
    WireError,
)

if TYPE_CHECKING:
    from sabir.ir import Node

# calls and data have rules of their own, for every graph and tensor; what Sabir lacks breaks no rule
_OTHERS: tuple[tuple[type[Exception], str], ...] = (
    (SchemaError, "CALL"), (WireError, "DATA"), (ExternalDataError, "DATA"), (UnsupportedError, "LACK"),
)  # fmt: skip
_TYPES, _VALUES = "TYPE001", "ATTR009"


def rule_of(error: Exception, node: Node | None) -> str:
    """Return the id of the rule that an error at a node breaks, or a word where another rule reports it."""
    if isinstance(error, AttributeValueError) and node is not None and node.attributes[error.attribute].ref:
        return _VALUES  # which only the call of the function tells
    return next((rule for kind, rule in _OTHERS if isinstance(error, kind)), _TYPES)
