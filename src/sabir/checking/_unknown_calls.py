"""Calls of what is not known, in the bodies of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError
from sabir.ir import Function

if TYPE_CHECKING:
    from sabir.schema import Scope


def unknown_inside(function: Function, scope: Scope, seen: set[Function]) -> str:
    """Return what is wrong with the first call of something unknown in a function's body, or ""."""
    if function in seen:
        return ""
    seen.add(function)
    inner = scope.of_body(function)
    for node in function.graph.all_nodes():
        try:
            callee = inner.callee(node)
        except SchemaError as error:
            return str(error)
        found = unknown_inside(callee, inner, seen) if isinstance(callee, Function) else ""
        if found:
            return found
    return ""
