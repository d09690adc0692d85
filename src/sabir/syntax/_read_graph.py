"""Graphs: names become values, and all links are made while reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import LimitError, check_depth
from sabir.ir import Annotation, Graph, NameScope, Node, Value, read_outputs, read_value_info
from sabir.proto import GraphProto, NodeProto, TensorAnnotation, ValueInfoProto
from sabir.syntax._read_nodes import add_empty, annotate_node, read_call, read_parameters
from sabir.syntax._read_notes import read_note
from sabir.syntax._read_tensors import read_constant
from sabir.syntax._read_types import at_type, at_unknown_type, noted_type, read_bare_type, unknown_type

if TYPE_CHECKING:
    from sabir.ir import Attribute, Type
    from sabir.syntax._read_notes import Note
    from sabir.syntax._tokens import Cursor


class Entry(NamedTuple):
    """A name with its type and note; `start` is the token where the type begins."""

    name: str
    type: Type | None
    start: int
    note: Note | None = None


class GraphParser:
    """Reads graphs and function bodies at a cursor; each method raises ParseError."""

    __slots__ = ("_cursor", "_depth", "_scope")

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._scope = NameScope()
        self._depth = 0

    def graph(self, note: Note | None = None, scope: NameScope | None = None) -> Graph:
        """Read a graph: `name (inputs) => (outputs) <constants and types> {nodes}`.

        `note` is the one before it, if it was read already; `scope` is where its names are defined, by
        default a new one.
        """
        cursor, before = self._cursor, self._scope
        own_note = read_note(cursor) if note is None else note
        self._enter()
        graph = Graph(cursor.name("the name of a graph"))
        scope = self._scope = NameScope(before) if scope is None else scope
        if cursor.tokens[cursor.at] == "(":
            self._inputs(graph)
        cursor.expect("=>")
        outputs = self._entries()
        infos = self._infos(graph)
        self._nodes(graph)
        read_outputs(graph, outputs, self._scope, self._describe)
        read_value_info(graph, infos, self._scope, self._describe, inputs=graph.inputs)
        if own_note is not None:
            self._annotate(graph, own_note)
            if note is None:
                own_note.done()
        scope.close()
        graph.clashes = scope.clashes
        self._scope = before
        self._depth -= 1
        return graph

    def body(self, name: str) -> Graph:
        """Read what follows the name and attributes of a function."""
        graph = Graph(name)
        self._enter()
        self._scope = NameScope()
        inputs = self._entries()
        for place, entry in enumerate(inputs):
            value = self._scope.define(entry.name)
            if entry.type is not None:
                value.value_info_index = place
                self._describe(value, entry)
            graph.inputs.append(value)
        self._cursor.expect("=>")
        outputs = self._entries()
        infos = [e for e in outputs if e.type is not None] + self._function_infos()
        self._nodes(graph)
        read_value_info(graph, infos, self._scope, self._describe, first=len(inputs))
        graph.outputs.extend(self._scope.read(e.name) for e in outputs)
        graph.clashes = self._scope.clashes
        self._depth -= 1
        return graph

    def node(self) -> Node:
        """Read a node."""
        call, scope = read_call(self._cursor, self.graph), self._scope
        inputs = [scope.read(name) for name in call.inputs]
        outputs = tuple([scope.define(name) if name else None for name in call.outputs])
        node = Node.linked(
            call.op,
            inputs,
            outputs,
            call.attributes,
            domain=call.domain,
            name=call.label or "",
            overload=call.overload,
        )
        if call.note is not None:
            annotate_node(node, call.note)
        if call.label is not None and not call.label:
            add_empty(node, ("name",))
        return node

    def parameters(self) -> dict[str, Attribute | None]:
        """Read the attributes of a function, some with a default."""
        return read_parameters(self._cursor, self.graph)

    def _nodes(self, graph: Graph) -> None:
        cursor = self._cursor
        cursor.expect("{", "the nodes are in braces")
        while cursor.tokens[cursor.at] != "}":
            if not cursor.tokens[cursor.at]:
                raise cursor.expected("a node or '}'")
            graph.append(self.node())
        cursor.at += 1

    def _entry(self) -> Entry:
        cursor = self._cursor
        note, start = read_note(cursor), cursor.at
        if not at_type(cursor) and at_unknown_type(cursor):
            raise unknown_type(cursor)
        declared = noted_type(read_bare_type(cursor), note) if at_type(cursor) else None
        return Entry(cursor.name("a name"), declared, start, note)

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
            value = self._describe(self._scope.define(entry.name), entry)
            graph.inputs.append(value)
            if cursor.skip("="):
                graph.set_initializer(value, read_constant(cursor, entry.type, entry.start))
            if not cursor.skip(","):
                break
        cursor.expect(")")

    def _infos(self, graph: Graph) -> list[Entry]:
        """Read the initializers into the graph, and return the types of other values."""
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
        cursor.expect(">", "a function has types here but no constants; use Constant nodes")
        return infos

    def _initialize(self, graph: Graph, entry: Entry) -> None:
        """Read an initializer: the default of an input, or a constant."""
        value = self._scope.own(entry.name)
        if value is None or value in graph.initializers:
            value = self._scope.define(entry.name)
        constant = read_constant(self._cursor, entry.type, entry.start, note=entry.note)
        graph.set_initializer(value, constant)
        if entry.note is not None:
            value.name = _renamed(value, entry.note)
            entry.note.done()

    def _describe(self, value: Value, entry: Entry) -> Value:
        """Give a value the type and the note of an entry."""
        value.type, note = entry.type, entry.note
        if note is None:
            value.doc, value.metadata, value.residue = "", None, None
            return value
        value.doc, value.metadata = note.text("doc_string"), note.pairs("metadata_props")
        value.residue = note.residue(ValueInfoProto)
        value.name = _renamed(value, note)
        note.done()
        return value

    def _annotate(self, graph: Graph, note: Note) -> None:
        """Give a graph the content of its note."""
        graph.doc, graph.metadata = note.text("doc_string"), note.pairs("metadata_props")
        graph.residue = note.residue(GraphProto)
        name = note.name()
        graph.name = graph.name if name is None else name
        graph.annotations = tuple(map(self._annotation, note.objects("quantization_annotation")))
        spread_empty(graph, note)

    def _annotation(self, note: Note) -> Annotation:
        read = self._scope.read
        value = read(note.text("tensor_name")) or Value()
        parameters: list[tuple[str, Value]] = []
        for pair in note.objects("quant_parameter_tensor_names"):
            parameters.append((pair.text("key"), read(pair.text("value")) or Value()))
            pair.done()
        found = Annotation(value, tuple(parameters), note.residue(TensorAnnotation))
        note.done()
        return found

    def _enter(self) -> None:
        """Count one more level of graphs; raises ParseError above the limit."""
        self._depth += 1
        try:
            check_depth(self._depth)
        except LimitError as error:
            raise self._cursor.error(str(error)) from None


def spread_empty(graph: Graph, note: Note) -> None:
    """Give every node of a graph the empty fields that its note lists for all."""
    common = note.fields("empty_in_nodes", NodeProto)
    for node in graph if common else ():
        add_empty(node, common)


def _renamed(value: Value, note: Note) -> str:
    """Return the name of a value: the one in the text, unless the note has the real one."""
    name = note.name()
    return value.name if name is None else name
