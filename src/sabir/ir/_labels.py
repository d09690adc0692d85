"""The names under which values are written: their own, made unique where they are missing or clash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import SchemaError, check_depth
from sabir.ir._fresh import FreshNames
from sabir.ir._rereading import misread_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.ir._graph import Graph
    from sabir.ir._value import Value


class Labels:
    """Names for every value of some graphs and of the graphs inside them, without a change to the model.

    A value keeps its name unless another value of its graph has it, or the name would hide an outer or
    undefined value that a graph inside reads. If values share a name, an input or an output of the graph
    keeps it. Names that clashed in the file (`Graph.clashes`) stay, as long as every reader finds its value
    by them.
    """

    __slots__ = ("_assigned", "_captures", "_closed", "_fresh", "_names", "_outside", "_shared", "_single")

    def __init__(
        self, *graphs: Graph, around: Iterable[Value | None] = (), outside: Iterable[Value] = (),
        closed: bool = False,
    ) -> None:  # fmt: skip
        """Name the values of graphs, and first those `around` them, which belong to no graph.

        `outside` are values of the graphs that something outside refers to by name, as training does. Raises
        SchemaError where the graphs are `closed` and read a value of a graph that is not among them: its name
        would mean nothing there, or another value.
        """
        self._closed = closed
        self._names: dict[Value, str] = {}
        self._fresh = FreshNames()
        self._captures: dict[Graph, set[Value]] = {}
        self._outside = frozenset(outside)
        self._assigned: set[str] = set()
        self._shared = False  # whether values have one name, in one graph or in two
        self._single: set[str] = (
            set()
        )  # the names that only one value may have, or a reader takes another one
        outer = [v for v in dict.fromkeys(around) if v is not None]
        self._fresh.take(v.name for v in outer)
        for graph in graphs:
            self._survey(graph, 1)
        self._give(outer, set(), {}, {})
        for graph in graphs:
            self._root(graph)

    def __call__(self, value: Value) -> str:
        """Return the name of a value; one from elsewhere keeps its own."""
        return self._names.get(value, value.name)

    def add(self, graph: Graph) -> None:
        """Name the values of another graph that sees those named so far; raises LimitError as at first."""
        self._survey(graph, 1)
        self._root(graph)

    def _survey(self, graph: Graph, depth: int) -> set[Value]:
        """Note the names in a graph, and what it and each graph inside it reads from around it."""
        check_depth(depth)
        read: set[Any] = {*graph.outputs}
        for node in graph:
            read.update(node.inputs)
            for inner in node.graphs:
                read |= self._survey(inner, depth + 1)
        read.discard(None)
        defined = set(graph.defined())
        captured = self._captures[graph] = read - defined
        self._fresh.take([v.name for v in defined])
        self._fresh.take([v.name for v in captured])
        return captured

    def _root(self, graph: Graph) -> None:
        """Name what a graph and those inside it define, until every reader finds its value by name."""
        if self._closed:
            self._require_closed(graph)
        outer = frozenset(self._assigned)
        while True:
            self._assigned, self._shared = set(outer), False
            self._graph(graph)
            misread = misread_names(graph, self, self._outside) if self._shared else set[str]()
            if misread <= self._single:
                return
            self._single |= misread

    def _require_closed(self, graph: Graph) -> None:
        for value in self._captures[graph]:
            if value.source is not None and value.home not in self._captures:
                owner = (
                    repr(value.home) if value.home is not None else f"{value.source!r}, which is in no graph"
                )
                raise SchemaError(f"{graph!r} reads {value!r} of {owner}: that is not in scope")

    def _graph(self, graph: Graph) -> None:
        ports = (*graph.inputs, *(v for v in graph.outputs if v is not None and v.home is graph))
        keepers: dict[str, Value] = {}
        for value in ports:
            keepers.setdefault(value.name, value)
        self._give(graph.defined(), {self(v) for v in self._captures[graph]}, keepers, graph.clashes)
        for node in graph:
            for inner in node.graphs:
                self._graph(inner)

    def _give(
        self, values: Iterable[Value], hidden: set[str], keepers: Mapping[str, Value],
        clashes: Mapping[Value, str],
    ) -> None:  # fmt: skip
        """Name values, apart from one another and from what is `hidden`; `keepers` come before others."""
        values = list(values)
        own = {value.name for value in values}
        if len(own) == len(values) and "" not in own and own.isdisjoint(hidden | self._single):
            self._shared = self._shared or not own.isdisjoint(self._assigned)
            self._assigned |= own
            self._names.update({value: value.name for value in values})
            return
        taken = dict.fromkeys(hidden, True)  # and whether all that have the name had it in the file
        for value in values:
            name = value.name
            keeper = keepers.get(name, value)
            clashed = bool(clashes) and self._clashed(value, clashes)
            if name in taken or keeper is not value:
                free = clashed and taken.get(name, True) and self._clashed(keeper, clashes)
            else:
                free = bool(name) and not (name in self._single and name in self._assigned)
            if not free:
                name = self._fresh.numbered(name)
            taken[name] = taken.get(name, True) and clashed
            self._shared = self._shared or name in self._assigned
            self._assigned.add(name)
            self._names[value] = name

    def _clashed(self, value: Value, clashes: Mapping[Value, str]) -> bool:
        """Whether the name of a value clashed in the file already, and may stay."""
        return clashes.get(value) == value.name and value.name not in self._single
