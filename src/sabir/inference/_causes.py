"""Why inference reports something: the kind of mistake, whichever rule of the checker it breaks."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import AttributeValueError, ExternalDataError, SchemaError, UnsupportedError, WireError
from sabir.schema import Version, check_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.base import Severity
    from sabir.ir import Function, Node
    from sabir.schema import Scope


class Cause(Enum):
    """The kind of mistake that a diagnostic reports.

    >>> Cause.CYCLE.severity
    'error'
    """

    TYPE = "types that contradict each other or their operator"
    DECLARED_SIZE = "a declared size that holds for some sizes of the inputs only"
    NOT_INFERRED = "a node whose operator has no inference"
    ATTRIBUTE_VALUE = "an attribute value that the operator does not admit"
    UNDEFINED_VALUE = "a value that nothing defines"
    CYCLE = "nodes that read one another in a cycle"
    OPERATOR = "an operator that does not exist in the imported version"
    DOMAIN = "a domain without known operators"
    ARITY = "a wrong number of inputs or outputs"
    ATTRIBUTE = "an attribute that is unknown, missing or of another type"
    OPSET = "an operator set version that is newer than the newest known one"
    DATA = "tensor data that cannot be read"

    @property
    def severity(self) -> Severity:
        """The severity of a diagnostic with this cause."""
        return "warning" if self in _WARNINGS else "error"


_WARNINGS = frozenset({Cause.DECLARED_SIZE, Cause.NOT_INFERRED, Cause.DOMAIN})


class CallSite(NamedTuple):
    """A node being inferred. `find_callee` returns what it calls, or raises SchemaError."""

    node: Node
    scope: Scope
    find_callee: Callable[[Node, Scope], Version | Function]


def cause_of(error: Exception, call: CallSite | None = None) -> Cause:
    """Return the cause of an error; `call` is the node that raised it, if one did."""
    if isinstance(error, UnsupportedError):
        return Cause.NOT_INFERRED
    if isinstance(error, (WireError, ExternalDataError)):
        return Cause.DATA
    if isinstance(error, AttributeValueError):
        return Cause.ATTRIBUTE_VALUE
    if isinstance(error, SchemaError):
        return Cause.UNDEFINED_VALUE if call is None else _cause_in_call(*call)
    return Cause.TYPE


def _cause_in_call(
    node: Node, scope: Scope, find_callee: Callable[[Node, Scope], Version | Function]
) -> Cause:
    try:
        callee = find_callee(node, scope)
    except SchemaError:
        imported = scope.opset(node.domain) is not None
        return Cause.DOMAIN if imported and not scope.knows(node) else Cause.OPERATOR
    try:
        if isinstance(callee, Version):
            callee.formal.check_arity(node.inputs, len(node.outputs))
        else:
            check_call(callee, node)
    except SchemaError:
        return Cause.ARITY
    without_inference = isinstance(callee, Version) and callee.find("infer") is None
    return Cause.NOT_INFERRED if without_inference else Cause.ATTRIBUTE
