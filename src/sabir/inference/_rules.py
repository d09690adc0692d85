"""Which rule of the checker breaks where inference fails, so that both report it alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import AttributeValueError, ExternalDataError, SchemaError, UnsupportedError, WireError
from sabir.ir import canonical_domain
from sabir.schema import Version, check_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.base import Severity
    from sabir.ir import Function, Node
    from sabir.schema import Scope


class Broken(NamedTuple):
    """The id of a rule, and how severe a break of it is."""

    rule: str
    severity: Severity = "error"


_TYPES, _UNDEFINED = Broken("TYPE001"), Broken("GRAPH005")
_NO_OPERATOR, _ARITY, _ATTRIBUTES = Broken("NODE001"), Broken("NODE002"), Broken("NODE003")
_UNKNOWN_DOMAIN, _NO_INFERENCE = Broken("NODE007", "warning"), Broken("TYPE008", "warning")
_VALUES = Broken("ATTR009")
_DATA = Broken("DATA")  # several rules, for every tensor


class Calling(NamedTuple):
    """A node that inference looks at; `callee` returns what it calls, or raises SchemaError."""

    node: Node
    scope: Scope
    callee: Callable[[Node, Scope], Version | Function]


def broken_by(error: Exception, calling: Calling | None = None) -> Broken:
    """Return what an error breaks that inference met, at a node if there is one."""
    if isinstance(error, UnsupportedError):
        return _NO_INFERENCE
    if isinstance(error, (WireError, ExternalDataError)):
        return _DATA
    if isinstance(error, AttributeValueError):
        return _VALUES
    if isinstance(error, SchemaError):
        return _UNDEFINED if calling is None else _by_call(*calling)
    return _TYPES


def _by_call(node: Node, scope: Scope, find: Callable[[Node, Scope], Version | Function]) -> Broken:
    try:
        callee = find(node, scope)
    except SchemaError:
        imported = scope.opset(node.domain) is not None
        return _UNKNOWN_DOMAIN if imported and not _is_known(node.domain, scope) else _NO_OPERATOR
    try:
        if isinstance(callee, Version):
            callee.formal.check_arity(node.inputs, len(node.outputs))
        else:
            check_call(callee, node)
    except SchemaError:
        return _ARITY
    without_inference = isinstance(callee, Version) and callee.find("infer") is None
    return _NO_INFERENCE if without_inference else _ATTRIBUTES


def _is_known(domain: str, scope: Scope) -> bool:
    """Whether the operators of a domain are known, or the model defines functions in it."""
    name = canonical_domain(domain)
    return scope.registry.has_domain(name) or any(key[0] == name for key in scope.functions)
