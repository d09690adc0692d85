"""Names to values, while a graph is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Node, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Graph


class Scope:
    """The names of one graph, inside those of the graphs around it.

    A name that is read before anything defines it gets a value without a source. A later definition in the
    same graph adopts that value; when the graph is over, the graph around it takes on what is left.
    """

    __slots__ = ("_defined", "_outer", "_pending")

    def __init__(self, outer: Scope | None = None) -> None:
        self._outer = outer
        self._defined: dict[str, Value] = {}
        self._pending: dict[str, Value] = {}

    def read(self, name: str) -> Value | None:
        """Return what a name means here; None for the empty name."""
        if not name:
            return None
        for scope in self._chain():
            found = scope._defined.get(name)  # ruff: ignore[private-member-access]  its own kind
            if found is not None:
                return found
        pending = self._pending.get(name)
        if pending is None:
            pending = self._pending[name] = Value(name)
        return pending

    def define(self, name: str) -> Value:
        """Return the value that a definition gives a name; the empty name cannot be read."""
        value = self._pending.pop(name, None) or Value(name)
        if name:
            self._defined[name] = value
        return value

    def own(self, name: str) -> Value | None:
        """Return the value that this very graph gives a name, if it does."""
        return self._defined.get(name)

    def close(self) -> None:
        """Hand what nothing here defined to the graph around."""
        if self._outer is None:
            return
        waiting = self._outer._pending  # ruff: ignore[private-member-access]  its own kind
        merged: dict[Value, Value] = {}
        for name, value in self._pending.items():
            there = waiting.setdefault(name, value)
            if there is not value:
                merged[value] = there
        _replace(merged)

    def _chain(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope._outer  # ruff: ignore[private-member-access]  its own kind


def _replace(merged: dict[Value, Value]) -> None:
    """Put values in the place of others; each reader is rewritten once, however much it reads."""
    users: dict[Node | Graph, None] = {use.user: None for value in merged for use in value.uses}
    for user in users:
        reads = user.inputs if isinstance(user, Node) else user.outputs
        reads[:] = [v if v is None else merged.get(v, v) for v in reads]
