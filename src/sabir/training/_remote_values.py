"""The state of a distributed training, which workers have, as a mapping that fetches what is read."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.ir import Array


class RemoteValues(Mapping[str, "Array"]):
    """The values of state variables after a step; each is fetched when it is first read.

    >>> values = RemoteValues(['w', 'b'], lambda names: {name: np.zeros(1) for name in names})
    >>> values['w'], len(values)
    (array([0.]), 2)
    """

    def __init__(self, names: Iterable[str], fetch: Callable[[list[str]], dict[str, Array]]) -> None:
        """Take the names, and what returns the values of some of them."""
        self._names, self._fetch = dict.fromkeys(names), fetch
        self._known: dict[str, Array] = {}

    def load(self, names: Iterable[str] | None = None) -> dict[str, Array]:
        """Return the values of some names, or of all of them, fetched together."""
        wanted = list(self._names if names is None else (n for n in names if n in self._names))
        missing = [name for name in wanted if name not in self._known]
        if missing:
            self._known |= self._fetch(missing)
        return {name: self._known[name] for name in wanted}

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        return self.load([name])[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def items(self) -> ItemsView[str, Array]:
        """Return names and values, fetched together."""
        return self.load().items()


__all__ = ["RemoteValues"]
