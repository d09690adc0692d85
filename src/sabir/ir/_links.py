"""The lists that keep links: what a node or a graph reads, and the inputs of a graph."""

# A list of reads keeps the uses of its values, so private names cross classes here.
# pyright: reportPrivateUsage=false
from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

if TYPE_CHECKING:
    from sabir.ir._graph import Graph
    from sabir.ir._node import Node
    from sabir.ir._value import Value


class Use(NamedTuple):
    """A place where a value is read: an input of a node, or an output of a graph."""

    user: Node | Graph
    slot: int


class Readable:
    """The part of a value that the links need: the places that read it, as (user, slot)."""

    __slots__ = ("_uses",)

    _uses: dict[tuple[Node | Graph, int], None]


class Reads(MutableSequence["Value | None"]):
    """The values that a node or a graph reads; records each slot among the value's uses."""

    __slots__ = ("_items", "_user")

    def __init__(self, user: Node | Graph, items: Iterable[Value | None] = ()) -> None:
        """Raises TypeError for what is not a sequence of values; then nothing is linked."""
        self._user = user
        self._items: list[Value | None] = items.copy() if isinstance(items, list) else _listed(items)
        require_values(self._items)
        self._link()

    @classmethod
    def linked(cls, user: Node | Graph, items: list[Value | None]) -> Reads:
        """Take over a list of values, without the check of each: for `Node.linked`."""
        reads = cls.__new__(cls)
        reads._user, reads._items = user, items
        reads._link()
        return reads

    def _link(self) -> None:
        for slot, value in enumerate(self._items):
            if value is not None:
                value._uses[self._user, slot] = None

    @overload
    def __getitem__(self, index: int) -> Value | None: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[Value | None]: ...
    def __getitem__(self, index: int | slice) -> Value | MutableSequence[Value | None] | None:
        return self._items[index]

    @overload
    def __setitem__(self, index: int, value: Value | None) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Value | None]) -> None: ...
    def __setitem__(self, index: int | slice, value: Value | Iterable[Value | None] | None) -> None:
        if isinstance(index, int):
            self._put(range(len(self._items))[index], cast("Value | None", value))
            return
        items = self._items.copy()
        items[index] = _listed(value)
        self._become(items)

    def __delitem__(self, index: int | slice) -> None:
        items = self._items.copy()
        del items[index]
        self._become(items)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Value | None]:
        """Visit a snapshot of the values, which later edits do not change."""
        return iter(tuple(self._items))

    def insert(self, index: int, value: Value | None) -> None:
        """Insert a value before `index`."""
        if index >= len(self._items):  # `append`, perhaps one of very many
            require_values((value,))
            self._items.append(None)
            self._put(len(self._items) - 1, value)
            return
        items = self._items.copy()
        items.insert(index, value)
        self._become(items)

    def _put(self, slot: int, value: Value | None) -> None:
        """Fill one slot."""
        require_values((value,))
        old, use = self._items[slot], (self._user, slot)
        if old is not None:
            del old._uses[use]
        if value is not None:
            value._uses[use] = None
        self._items[slot] = value

    def __repr__(self) -> str:
        return f"Reads({self._items!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self._items,)  # without its user a copy has no links to keep

    def _become(self, items: list[Value | None]) -> None:
        """Take new contents; only the slots that changed are linked again."""
        require_values(items)
        old, user = self._items, self._user
        changed = [i for i in range(max(len(old), len(items))) if _at(old, i) is not _at(items, i)]
        for slot in changed:
            value = _at(old, slot)
            if value is not None:
                del value._uses[user, slot]
        for slot in changed:
            value = _at(items, slot)
            if value is not None:
                value._uses[user, slot] = None
        self._items = items


def _at(items: list[Value | None], index: int) -> Value | None:
    return items[index] if index < len(items) else None


def _listed(items: object) -> list[Any]:
    """Return what should be values as a list; raises TypeError for a single value and for text."""
    if isinstance(items, (Readable, str)):
        raise TypeError(f"{items!r} is not a list of values; write [value], even for a single one")
    return list(cast("Iterable[Any]", items))


def require_values(items: Iterable[object]) -> None:
    """Raise TypeError where one of the items is neither a value nor None."""
    for item in items:
        if item is None or isinstance(item, Readable):
            continue
        if isinstance(item, str):
            advice = f"graph.value({item!r}) finds the value of that name"
        elif hasattr(item, "outputs"):
            advice = "its results are its `outputs`; the first is `output`"
        else:
            advice = "graph.add_initializer makes a value of an array"
        raise TypeError(f"a Value is expected, not the {type(item).__name__} {item!r}; {advice}")


class GraphInputs(MutableSequence["Value"]):
    """The inputs of a graph; the graph is the source of each."""

    __slots__ = ("_counts", "_graph", "_items")

    def __init__(self, graph: Graph, items: Iterable[Value] = ()) -> None:
        self._graph, self._items = graph, list["Value"]()
        self._counts: dict[Value, int] = {}  # how often each is listed: once, in a valid graph
        if items:  # a new graph has none
            self[:] = items

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[Value]: ...
    def __getitem__(self, index: int | slice) -> Value | MutableSequence[Value]:
        return self._items[index]

    @overload
    def __setitem__(self, index: int, value: Value) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Value]) -> None: ...
    def __setitem__(self, index: int | slice, value: Value | Iterable[Value]) -> None:
        one = isinstance(index, int)
        old = [self._items[index]] if one else self._items[index]
        new: list[Value] = [cast("Value", value)] if one else _listed(value)
        self._require(new)
        self._items[slice(index, index + 1 or None) if one else index] = new
        for v in new:
            self._take(v)
        self._release(old)

    def __delitem__(self, index: int | slice) -> None:
        old = [self._items[index]] if isinstance(index, int) else self._items[index]
        del self._items[index]
        self._release(old)

    def __len__(self) -> int:
        return len(self._items)

    def insert(self, index: int, value: Value) -> None:
        """Make a value an input, before `index`.

        Raises ValueError for a value that a node computes or that belongs to another graph.
        """
        self._require((value,))
        self._items.insert(index, value)
        self._take(value)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._items)

    def __contains__(self, value: object) -> bool:
        return value in self._counts

    def __repr__(self) -> str:
        return f"GraphInputs({self._items!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self._items,)  # without its graph a copy has no links to keep

    def _require(self, values: Iterable[Value | None]) -> None:
        require_values(values)
        for value in values:
            if value is None:
                raise TypeError("an input of a graph is a Value, not None")
            require_free(value, self._graph)

    def _take(self, value: Value) -> None:
        self._counts[value] = self._counts.get(value, 0) + 1
        value.source = self._graph

    def _release(self, values: Iterable[Value]) -> None:
        for v in values:
            self._counts[v] -= 1
            if not self._counts[v]:
                del self._counts[v]
                if v not in self._graph.initializers:
                    v.source = None


def require_free(value: Value, owner: Node | Graph) -> None:
    """Raise ValueError where something else than `owner` defines a value already."""
    source = value.source
    if source is not None and source is not owner:
        raise ValueError(f"{value!r} belongs to {source!r} already; use a new Value, or take it out there")
