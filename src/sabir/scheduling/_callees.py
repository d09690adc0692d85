"""What the nodes of one scope call, each name looked up once: a wrong name costs a search for a hint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError

if TYPE_CHECKING:
    from sabir.ir import Function, Node
    from sabir.schema import Scope, Version


class Callees:
    """The operator versions and functions that the nodes of one scope call."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._found: dict[tuple[str, str, str], Version | Function | SchemaError] = {}

    def of(self, node: Node) -> Version | Function:
        """Return what a node calls; raises SchemaError where nothing has its name."""
        key = (node.domain, node.op, node.overload)
        found = self._found.get(key)
        if found is None:
            try:
                found = self._scope.runnable(node)
            except SchemaError as error:
                found = error
            self._found[key] = found
        if isinstance(found, SchemaError):
            raise found
        return found
