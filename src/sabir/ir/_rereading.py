"""The names that a reader of a written graph would resolve to the wrong value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir._tensors import SparseTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sabir.ir._graph import Graph
    from sabir.ir._value import Value


def misread_names(graph: Graph, label: Callable[[Value], str], outside: Collection[Value] = ()) -> set[str]:
    """Return the names that a reader would resolve to another value than the graph means.

    `outside` are values that something outside the graph refers to.
    """
    rereading = _Rereading(label, outside)
    rereading.graph(graph, None)
    return rereading.misread


class _Names:
    """The names of one graph, resolved as by `NameScope`; the value that each means is known."""

    __slots__ = ("_misread", "outer", "pending", "values")

    def __init__(self, outer: _Names | None, misread: set[str]) -> None:
        self.outer, self._misread = outer, misread
        self.values: dict[str, Value] = {}
        self.pending: dict[str, Value] = {}

    def define(self, name: str, value: Value) -> None:
        self._expect(name, self.pending.pop(name, value), value)
        self.values[name] = value

    def read(self, name: str, value: Value) -> None:
        scope: _Names | None = self
        while scope is not None and name not in scope.values:
            scope = scope.outer
        found = self.pending.setdefault(name, value) if scope is None else scope.values[name]
        self._expect(name, found, value)

    def close(self) -> None:
        if self.outer is not None:
            for name, value in self.pending.items():
                self._expect(name, self.outer.pending.setdefault(name, value), value)

    def _expect(self, name: str, found: Value, value: Value) -> None:
        if found is not value:
            self._misread.add(name)


class _Rereading:
    """One pass in the order in which a file is read."""

    def __init__(self, label: Callable[[Value], str], outside: Collection[Value]) -> None:
        self.misread: set[str] = set()
        self._label, self._outside = label, outside

    def graph(self, graph: Graph, outer: _Names | None) -> None:
        names, label = _Names(outer, self.misread), self._label
        for value in graph.inputs:
            names.define(label(value), value)
        self._initializers(graph, names)
        for node in graph:
            for value in node.inputs:
                if value is not None:
                    names.read(label(value), value)
            for inner in node.graphs:
                self.graph(inner, names)
            for value in node.outputs:
                if value is not None:
                    names.define(label(value), value)
        for value in (*(v for v in graph.outputs if v is not None), *_annotated(graph)):
            names.read(label(value), value)
        for value in _described(graph, self._outside):
            if names.values.get(label(value)) is not value:
                self.misread.add(label(value))
        names.close()

    def _initializers(self, graph: Graph, names: _Names) -> None:
        """Resolve initializers: each to the input of its name, unless that has an initializer already."""
        taken: set[Value] = set()
        for value in sorted(graph.initializers, key=lambda v: isinstance(v.constant, SparseTensor)):
            name = self._label(value)
            there = names.values.get(name)
            if there is None or there in taken:
                names.define(name, value)
            elif there is not value:
                self.misread.add(name)
            taken.add(value)


def _annotated(graph: Graph) -> Iterator[Value]:
    for note in graph.annotations:
        yield note.value
        yield from (v for _, v in note.parameters)


def _described(graph: Graph, outside: Collection[Value]) -> Iterator[Value]:
    """Yield the values that an entry of value_info or something outside the graph refers to by name."""
    outputs = set(graph.outputs)
    for value in graph.defined():
        typed = value.node is not None and value.type is not None and value not in outputs
        if typed or value.value_info_index is not None or value in outside:
            yield value
