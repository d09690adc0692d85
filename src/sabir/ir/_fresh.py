"""Fresh names: the one place that numbers a name which is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir._graph import Graph


class FreshNames:
    """Hands out names that nothing else has; each one is taken from then on.

    >>> names = FreshNames(['x'])
    >>> names.fresh('x'), names.fresh('y')
    ('x_1', 'y')
    """

    __slots__ = ("_numbers", "_taken")

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    @classmethod
    def beside(cls, graphs: Iterable[Graph]) -> FreshNames:
        """Return names unlike those of all values of some graphs and the graphs inside them."""
        return cls(v.name for graph in graphs for inner in graph.scopes() for v in inner.defined())

    def take(self, names: Iterable[str]) -> None:
        """Keep names from being handed out."""
        self._taken.update(names)

    def fresh(self, name: str) -> str:
        """Return `name`, numbered where it is empty or taken: `relu`, `relu_1`, `value_1`."""
        if not name or name in self._taken:
            return self.numbered(name)
        self._taken.add(name)
        return name

    def numbered(self, name: str) -> str:
        """Return a numbered form of `name`, whether or not it is taken itself."""
        stem, number = name or "value", self._numbers.get(name, 0) + 1
        while (found := f"{stem}_{number}") in self._taken:
            number += 1
        self._numbers[name] = number
        self._taken.add(found)
        return found
