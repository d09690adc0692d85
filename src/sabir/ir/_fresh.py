"""Names that are not taken yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class FreshNames:
    """The names of a graph under construction, shared with the subgraphs in it."""

    __slots__ = ("_numbers", "_taken")

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def take(self, name: str) -> str:
        """Return `name`, numbered if it is taken."""
        found = name
        while found in self._taken:
            number = self._numbers[name] = self._numbers.get(name, 0) + 1
            found = f"{name}_{number}"
        self._taken.add(found)
        return found

    def numbered(self, prefix: str) -> str:
        """Return `prefix_0`, and further numbers in later calls."""
        number = self._numbers.get(prefix, 0)
        while f"{prefix}_{number}" in self._taken:
            number += 1
        self._numbers[prefix] = number + 1
        self._taken.add(f"{prefix}_{number}")
        return f"{prefix}_{number}"
