"""The nodes of a graph: a linked list, which may be edited while it is iterated."""

# The nodes keep the links of the list, so private names cross classes here.
# pyright: reportPrivateUsage=false
from __future__ import annotations

from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from sabir.ir._attributes import Nested
from sabir.ir._node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir._graph import Graph


class _Omitted(Enum):
    """The value of an argument that the caller left out, where None has a meaning."""

    OMITTED = "omitted"


_OMITTED: Final = _Omitted.OMITTED
_Place: TypeAlias = "Node | Literal[_Omitted.OMITTED] | None"


class NodeSequence(Nested):
    """A sequence of nodes, each of which knows the one before and the one after it."""

    __slots__ = ("_count", "_first", "_last", "may_nest")

    def __init__(self) -> None:
        self._first: Node | None = None
        self._last: Node | None = None
        self._count = 0
        self.may_nest = False  # whether a node ever had a subgraph: few graphs have one, and all walks ask

    def __iter__(self) -> Iterator[Node]:
        """Visit the nodes in order, also one inserted after the current one, but none that was erased."""
        node = self._first
        while node is not None:
            following = node._next
            if node.graph is self:
                yield node
            # an erased node still leads on; one that is in another graph now must not lead there
            node = node._next if node.graph is self or node.graph is None else following

    def __reversed__(self) -> Iterator[Node]:
        node = self._last
        while node is not None:
            if node.graph is self:
                yield node
            node = node._previous

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Node:
        """Return the node at a position, as in a list; this walks from the nearer end."""
        if not isinstance(index, int):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise TypeError(f"a position is a number, not {index!r}; graph.node finds a node by its name")
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError(f"{self!r} has no node {index}")
        from_end = self._count - 1 - place
        walk = islice(self, place, None) if place <= from_end else islice(reversed(self), from_end, None)
        return next(walk)

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and node.graph is self

    def __bool__(self) -> bool:
        return True

    def append(self, node: Node) -> Node:
        """Insert `node` at the end."""
        if not isinstance(node, Node) or node.graph is not None:  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            return self.insert(node, after=self._last)
        self._link(node, self._last)
        return node

    def prepend(self, node: Node) -> Node:
        """Insert `node` at the beginning."""
        return self.insert(node, after=None)

    def insert(self, node: Node, *, after: _Place = _OMITTED, before: _Place = _OMITTED) -> Node:
        """Insert `node` after or before another one: `after=None` is the beginning, `before=None` the end.

        Raises ValueError for a node that is in a graph, and for a neighbour that is not in this one;
        TypeError unless exactly one of `after` and `before` is passed.
        """
        if not isinstance(node, Node):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise TypeError(f"a Node is expected, not the {type(node).__name__} {node!r}")
        if node.graph is not None:
            raise ValueError(f"{node!r} is already in a graph; move it, or detach it there first")
        self._link(node, self._predecessor(after, before))
        return node

    def _predecessor(self, after: _Place, before: _Place) -> Node | None:
        """Return the node that comes right before a place, None for the beginning."""
        if (after is _OMITTED) == (before is _OMITTED):
            raise TypeError("pass either `after` or `before`: a node of this graph, or None for its ends")
        neighbour = before if after is _OMITTED else after
        if neighbour is not None and not isinstance(neighbour, Node):
            raise TypeError(f"a Node or None is expected, not the {type(neighbour).__name__} {neighbour!r}")
        if neighbour is not None and neighbour.graph is not self:
            raise ValueError(f"{neighbour!r} is not in this graph")
        if after is not _OMITTED:
            return after
        return before._previous if isinstance(before, Node) else self._last

    def _link(self, node: Node, after: Node | None) -> None:
        following = self._first if after is None else after._next
        node.graph, node._previous, node._next = cast("Graph", self), after, following
        if after is None:
            self._first = node
        else:
            after._next = node
        if following is None:
            self._last = node
        else:
            following._previous = node
        self._count += 1
        if node.attributes.may_have_graphs:
            self.may_nest = True

    def previous(self, node: Node) -> Node | None:
        """Return the node right before one of this graph; None for the first."""
        if node.graph is not self:
            raise ValueError(f"{node!r} is not in this graph")
        return node._previous

    def move(self, node: Node, *, after: _Place = _OMITTED, before: _Place = _OMITTED) -> None:
        """Move a node of this graph to another position in it; the arguments are those of `insert`."""
        if node is after or node is before:
            raise ValueError(f"{node!r} cannot come {'after' if node is after else 'before'} itself")
        if node.graph is not self:
            raise ValueError(f"{node!r} is not in this graph")
        previous = self._predecessor(after, before)
        if previous is not node:
            self._unlink(node)
            self._link(node, previous)

    def detach(self, node: Node) -> None:
        """Take a node out, to be inserted elsewhere; it keeps its operands and the readers of its results."""
        self._unlink(node)

    def arrange(self, nodes: Sequence[Node]) -> None:
        """Put all nodes of this graph in another order; raises ValueError for other nodes."""
        if len(nodes) != self._count or {*nodes} != {*self}:
            raise ValueError("the nodes to arrange are not those of the graph")
        self._first = self._last = None
        for node in nodes:
            node._previous, node._next = self._last, None
            if self._last is None:
                self._first = node
            else:
                self._last._next = node
            self._last = node

    def _unlink(self, node: Node) -> None:
        if node.graph is not self:
            raise ValueError(f"{node!r} is not in this graph")
        before, after = node._previous, node._next
        if before is None:
            self._first = after
        else:
            before._next = after
        if after is None:
            self._last = before
        else:
            after._previous = before
        node.graph = None
        self._count -= 1
