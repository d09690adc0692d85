"""The initializers of a graph: constants by value, or by name."""

# The mapping keeps the sources of its values, as the graph does.
# pyright: reportPrivateUsage=false
from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, MutableMapping, ValuesView
from typing import TYPE_CHECKING, Any, TypeVar, overload

from sabir.ir._finding import named
from sabir.ir._links import Readable

if TYPE_CHECKING:
    from sabir.ir._graph import Graph
    from sabir.ir._tensors import Constant
    from sabir.ir._value import Value

_Default = TypeVar("_Default")


class Initializers(MutableMapping["Value", "Constant"]):
    """Values and their data: a default where the value is an input, a constant elsewhere.

    A key is a value, or a name, which is looked up among all of them; iteration yields values. What is
    assigned is converted as by `Graph.set_initializer`.
    """

    __slots__ = ("_graph", "_items")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._items: dict[Value, Constant] = {}

    def __getitem__(self, key: Value | str) -> Constant:
        """Return the data; raises KeyError for a value without, NotFoundError for a name without."""
        return self._items[self.value(key) if isinstance(key, str) else key]

    def __setitem__(self, key: Value | str, data: Constant | object) -> None:
        self._graph.set_initializer(self.value(key) if isinstance(key, str) else key, data)

    def __delitem__(self, key: Value | str) -> None:
        self._graph.set_initializer(self.value(key) if isinstance(key, str) else key, None)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            return any(value.name == key for value in self._items)
        return isinstance(key, Readable) and key in self._items

    def __iter__(self) -> Iterator[Value]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def get(self, key: Value | str, /) -> Constant | None: ...
    @overload
    def get(self, key: Value | str, default: Constant, /) -> Constant: ...
    @overload
    def get(self, key: Value | str, default: _Default, /) -> Constant | _Default: ...
    def get(self, key: Value | str, default: Any = None, /) -> Any:
        """Return the data of an initializer, or `default`; raises NotFoundError for a name of several."""
        if isinstance(key, str):
            return self[key] if key in self else default  # ruff: ignore[if-else-block-instead-of-dict-get]  this is it
        return self._items.get(key, default)

    def keys(self) -> KeysView[Value]:
        """The values."""
        return self._items.keys()

    def values(self) -> ValuesView[Constant]:
        """The data."""
        return self._items.values()

    def items(self) -> ItemsView[Value, Constant]:
        """The values with their data."""
        return self._items.items()

    def clear(self) -> None:
        """Remove all initializers."""
        for value in list(self._items):
            del self[value]

    def value(self, name: str | Value) -> Value:
        """Return the initializer of a name, or an initializer unchanged.

        Raises NotFoundError where no initializer or several have the name, and for another value.
        """
        return named(name, self._items, "initializer", repr(self._graph))

    def __repr__(self) -> str:
        return f"Initializers({self._items!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._items,)  # without its graph a copy has no links to keep
