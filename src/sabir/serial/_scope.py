"""Names to values, while a graph is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import WireError, quote
from sabir.ir import Value

if TYPE_CHECKING:
    from collections.abc import Iterable


class NameScope:
    """The names of one graph and of those around it.

    A name that is read before anything defines it gets a value without a source; the definition adopts it
    when it comes later in the same graph, and an outer graph gets its chance when the inner one is done.
    """

    __slots__ = ("_outer", "_pending", "_values")

    def __init__(self, outer: NameScope | None = None) -> None:
        self._outer = outer
        self._values: dict[str, Value] = {}
        self._pending: dict[str, Value] = {}

    def read(self, name: str) -> Value | None:
        """Return what a name means here; None for the empty name."""
        value = self._values.get(name)
        if value is not None:
            return value
        return self._elsewhere(name) if name else None

    def _elsewhere(self, name: str) -> Value:
        outer = self._outer
        while outer is not None:
            value = outer._values.get(name)  # noqa: SLF001 - a scope of its own kind
            if value is not None:
                return value
            outer = outer._outer  # noqa: SLF001 - a scope of its own kind
        pending = self._pending.get(name)
        if pending is None:
            pending = self._pending[name] = Value(_text(name))
        return pending

    def define(self, name: str) -> Value | None:
        """Return the value that a definition gives a name; None for the empty name."""
        if not name:
            return None
        value = self._pending.pop(name, None) if self._pending else None
        if value is None:
            value = Value(_text(name))
        self._values[name] = value
        return value

    def known(self, name: str) -> Value | None:
        """Return the value that this very graph gives a name, if it does."""
        return self._values.get(name)

    def adopt(self, values: Iterable[Value]) -> None:
        """Take values that are defined already."""
        for value in values:
            self._values[value.name] = value

    def close(self) -> None:
        """Hand what nothing here defined to the graph around."""
        outer = self._outer
        if outer is None:
            return
        for name, value in self._pending.items():
            there = outer._pending.setdefault(name, value)  # noqa: SLF001 - a scope of its own kind
            if there is not value:
                value.replace_with(there)


def _text(name: object) -> str:
    """Return a name as text: protobuf gives bytes where it is no UTF-8."""
    if type(name) is not str:
        raise WireError(f"the name {quote(name)} is not UTF-8")
    return name
