"""Names to values, while a graph is read from a file or a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import TextError, quote
from sabir.ir._graph import Graph
from sabir.ir._node import Node
from sabir.ir._value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable


class NameScope:
    """The names of one graph, inside those of the graphs around it.

    A name that is read before anything defines it gets a value without a source. A later definition in the
    same graph uses that value; at the end of the graph the rest passes to the graph around it.

    `clashes` has the values that share their name with another value of this graph or of one around it.
    """

    __slots__ = ("_outer", "_pending", "_values", "clashes")

    def __init__(self, outer: NameScope | None = None) -> None:
        self._outer = outer
        self._values: dict[str, Value] = {}
        self._pending: dict[str, Value] = {}
        self.clashes: dict[Value, str] = {}

    def read(self, name: str) -> Value | None:
        """Return the value of a name, None for the empty one; raises TextError for one that is not text."""
        value = self._values.get(name)
        if value is not None:
            return value
        return self._elsewhere(name) if name else None

    def read_all(self, names: Iterable[str]) -> list[Value | None]:
        """Return the values of names, as `read` does."""
        values = self._values
        return [values[name] if name in values else self.read(name) for name in names]

    def define(self, name: str) -> Value:
        """Define a name and return its value; the empty name cannot be read.

        Raises TextError for a name that is not text.
        """
        value = self._pending.pop(name, None) if self._pending else None
        if value is None:
            value = Value(_text(name))
        if name:
            if name in self._values:
                self.clashes[self._values[name]] = self.clashes[value] = name
            elif self._outer is not None and self._outer.has(name):
                self.clashes[value] = name
            self._values[name] = value
        return value

    def has(self, name: str) -> bool:
        """Return whether this graph or one around it has defined a name so far."""
        scope: NameScope | None = self
        while scope is not None and name not in scope._values:
            scope = scope._outer
        return scope is not None

    def own(self, name: str) -> Value | None:
        """Return the value that this graph itself defines under a name, or None."""
        return self._values.get(name)

    def close(self) -> None:
        """Pass the names that nothing here defined to the graph around."""
        if self._outer is None:
            return
        waiting = self._outer._pending
        merged: dict[Value, Value] = {}
        for name, value in self._pending.items():
            there = waiting.setdefault(name, value)
            if there is not value:
                merged[value] = there
        _replace(merged)

    def _elsewhere(self, name: str) -> Value:
        outer = self._outer
        while outer is not None:
            value = outer._values.get(name)
            if value is not None:
                return value
            outer = outer._outer
        pending = self._pending.get(name)
        if pending is None:
            pending = self._pending[name] = Value(_text(name))
        return pending


def _text(name: object) -> str:
    """Return a name that is text; protobuf returns bytes where it is not UTF-8."""
    if type(name) is not str:
        raise TextError(f"the name {quote(name)} is not UTF-8")
    return name


def _replace(merged: dict[Value, Value]) -> None:
    """Replace values by others; each reader is rewritten once, however many of them it reads."""
    users: dict[Node | Graph, None] = {use.user: None for value in merged for use in value.uses}
    for user in users:
        reads = user.inputs if isinstance(user, Node) else user.outputs
        reads[:] = [v if v is None else merged.get(v, v) for v in reads]
        if isinstance(user, Graph):
            infos = user.output_infos.items()
            user.output_infos = {slot: (merged.get(v, v), info) for slot, (v, info) in infos}
