"""Nodes and graphs: names become values, and every link is made on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import quote
from sabir.ir import Attribute, Graph, NameScope, Node, Value
from sabir.text._read_attributes import read_attribute, read_attributes
from sabir.text._read_tensors import read_constant
from sabir.text._read_types import at_type, read_type
from sabir.text._words import LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Type
    from sabir.text._tokens import Cursor


class Entry(NamedTuple):
    """A name, and what is said of it; `start` is the token where that begins."""

    name: str
    type: Type | None
    start: int


class GraphReader:
    """Reads graphs and function bodies at a cursor; each method raises ParseError."""

    __slots__ = ("_cursor", "_scope")

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._scope = NameScope()

    def graph(self) -> Graph:
        """Read a graph: `name (inputs) => (outputs) <constants and types> {nodes}`."""
        cursor, outer = self._cursor, self._scope
        cursor.enter("graphs")
        graph = Graph(cursor.name("the name of a graph"))
        self._scope = NameScope(outer)
        if cursor.tokens[cursor.at] == "(":
            self._inputs(graph)
        cursor.expect("=>")
        outputs = self._entries()
        infos = self._infos(graph)
        self._nodes(graph)
        self._outputs(graph, outputs)
        self._describe(graph, infos)
        self._scope.close()
        self._scope = outer
        cursor.leave()
        return graph

    def body(self, name: str) -> Graph:
        """Read what follows the name and attributes of a function."""
        graph = Graph(name)
        self._scope = NameScope()
        inputs = self._entries()
        for place, entry in enumerate(inputs):
            value = self._scope.define(entry.name)
            if entry.type is not None:
                value.type, value.info = entry.type, place
            graph.inputs.append(value)
        self._cursor.expect("=>")
        outputs = self._entries()
        infos = [e for e in outputs if e.type is not None] + self._function_infos()
        self._nodes(graph)
        self._outputs(graph, [Entry(e.name, None, e.start) for e in outputs])
        self._describe(graph, infos, first=len(inputs))
        return graph

    def node(self) -> Node:
        """Read a node: `[label] outputs = domain.Op:overload <attributes> (inputs)`."""
        cursor = self._cursor
        label = self._label() if cursor.tokens[cursor.at] == "[" else ""
        outputs = self._names()
        cursor.expect("=", "a node is written `y = Op (x)`")
        op, domain = cursor.name("an operator"), ""
        while cursor.skip("."):
            domain = f"{domain}.{op}" if domain else op
            op = cursor.name("an operator")
        overload = cursor.name("the name of an overload") if cursor.skip(":") else ""
        attributes: dict[str, Attribute] | None = None
        if cursor.tokens[cursor.at] == "<":
            attributes = read_attributes(cursor, self.graph)
        cursor.expect("(", "the inputs stand in parentheses, even if there are none")
        inputs = self._names()
        cursor.expect(")", "inputs are names separated by commas")
        if attributes is None and cursor.tokens[cursor.at] == "<":
            attributes = read_attributes(cursor, self.graph)
        scope = self._scope
        reads = [scope.read(name) for name in inputs]
        writes = [scope.define(name) if name else None for name in outputs]
        return Node(op, reads, writes, attributes, domain=domain, name=label, overload=overload)

    def parameters(self) -> dict[str, Attribute | None]:
        """Read the attributes that a function takes: names, some with a default."""
        cursor = self._cursor
        found: dict[str, Attribute | None] = {}
        if not cursor.skip("<"):
            return found
        while True:
            start = cursor.at
            name = cursor.name("the name of an attribute")
            if name in found:
                raise cursor.error(f"attribute {quote(name)} is given twice", start)
            told = cursor.tokens[cursor.at] in {":", "="}
            found[name] = read_attribute(cursor, name, self.graph) if told else None
            if not cursor.skip(","):
                break
        cursor.expect(">", "attributes are separated by commas")
        return found

    def _label(self) -> str:
        cursor = self._cursor
        cursor.expect("[")
        label = "" if cursor.tokens[cursor.at] == "]" else cursor.name("the name of a node")
        cursor.expect("]")
        return label

    def _names(self) -> list[str]:
        """Read names, each of which may be left out before a comma: `(x,)` has one, `(,x)` has two."""
        cursor = self._cursor
        tokens = cursor.tokens
        names: list[str] = []
        while True:
            word = tokens[cursor.at]
            if word[:1] in LETTERS:
                names.append(word)
                cursor.at += 1
            elif word[:1] == '"':
                names.append(cursor.string("a name"))
            elif word == ",":
                names.append("")
            else:
                return names
            if tokens[cursor.at] != ",":
                return names
            cursor.at += 1

    def _nodes(self, graph: Graph) -> None:
        cursor = self._cursor
        cursor.expect("{", "the nodes stand in braces")
        while cursor.tokens[cursor.at] != "}":
            if not cursor.tokens[cursor.at]:
                raise cursor.expected("a node or '}'")
            graph.append(self.node())
        cursor.at += 1

    def _entry(self) -> Entry:
        cursor = self._cursor
        start = cursor.at
        declared = read_type(cursor) if at_type(cursor) else None
        return Entry(cursor.name("a name"), declared, start)

    def _entries(self) -> list[Entry]:
        cursor = self._cursor
        cursor.expect("(")
        if cursor.skip(")"):
            return []
        found = [self._entry()]
        while cursor.skip(","):
            found.append(self._entry())
        cursor.expect(")")
        return found

    def _inputs(self, graph: Graph) -> None:
        cursor = self._cursor
        cursor.expect("(")
        if cursor.skip(")"):
            return
        while True:
            entry = self._entry()
            value = self._scope.define(entry.name)
            value.type = entry.type
            graph.inputs.append(value)
            if cursor.skip("="):
                graph.set_initializer(value, read_constant(cursor, entry.type, entry.start))
            if not cursor.skip(","):
                break
        cursor.expect(")")

    def _infos(self, graph: Graph) -> list[Entry]:
        """Read constants into the graph, and return the types that are told of other values."""
        cursor = self._cursor
        infos: list[Entry] = []
        if not cursor.skip("<") or cursor.skip(">"):
            return infos
        while True:
            entry = self._entry()
            if cursor.skip("="):
                self._initialize(graph, entry)
            else:
                infos.append(entry)
            if not cursor.skip(","):
                break
        cursor.expect(">", "constants and types are separated by commas")
        return infos

    def _function_infos(self) -> list[Entry]:
        cursor = self._cursor
        infos: list[Entry] = []
        if not cursor.skip("<") or cursor.skip(">"):
            return infos
        while True:
            infos.append(self._entry())
            if not cursor.skip(","):
                break
        cursor.expect(">", "a function holds types here, but no constants: those are made by Constant nodes")
        return infos

    def _initialize(self, graph: Graph, entry: Entry) -> None:
        """Give an input its default, or define a constant."""
        value = self._scope.own(entry.name)
        if value is None or value in graph.initializers:
            value = self._scope.define(entry.name)
        graph.set_initializer(value, read_constant(self._cursor, entry.type, entry.start))

    def _outputs(self, graph: Graph, entries: Iterable[Entry]) -> None:
        for entry in entries:
            value = self._scope.read(entry.name)
            if value is not None and value.type is None:
                # what an outer graph defines, or may yet define, is not for an inner one to describe
                mine = self._cursor.depth <= 1 or self._scope.own(entry.name) is value
                value.type = entry.type if mine else None
            graph.outputs.append(value)

    def _describe(self, graph: Graph, infos: Iterable[Entry], first: int = 0) -> None:
        """Give values the types told of them; what names nothing here, or says more, is kept as stale."""
        stale: list[Value] = []
        for place, entry in enumerate(infos, first):
            value = self._scope.own(entry.name)
            if value is None or value.info is not None or value.type is not None:
                value = Value(entry.name)
                stale.append(value)
            value.type, value.info = entry.type, place
        graph.stale = tuple(stale)
