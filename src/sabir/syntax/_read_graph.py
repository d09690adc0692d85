"""Nodes and graphs: names become values, and every link is made on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import LimitError, check_depth, quote
from sabir.ir import Annotation, Attribute, Graph, NameScope, Node, Residue, Value
from sabir.proto import GraphProto, NodeProto, TensorAnnotation, ValueInfoProto
from sabir.syntax._read_attributes import read_attribute, read_attributes
from sabir.syntax._read_notes import read_devices, read_note
from sabir.syntax._read_tensors import read_constant
from sabir.syntax._read_types import at_type, at_unknown_type, noted_type, read_bare_type, unknown_type
from sabir.syntax._words import LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Type
    from sabir.syntax._read_notes import Note
    from sabir.syntax._tokens import Cursor


class Entry(NamedTuple):
    """A name, and what is said of it; `start` is the token where that begins."""

    name: str
    type: Type | None
    start: int
    note: Note | None = None


class GraphReader:
    """Reads graphs and function bodies at a cursor; each method raises ParseError."""

    __slots__ = ("_cursor", "_depth", "_scope")

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._scope = NameScope()
        self._depth = 0

    def graph(self, note: Note | None = None, scope: NameScope | None = None) -> Graph:
        """Read a graph: `name (inputs) => (outputs) <constants and types> {nodes}`.

        `note` is the one before it, if that was read; `scope` takes its names, by default one of its own.
        """
        cursor, before = self._cursor, self._scope
        told = read_note(cursor) if note is None else note
        self._enter()
        graph = Graph(cursor.name("the name of a graph"))
        scope = self._scope = NameScope(before) if scope is None else scope
        if cursor.tokens[cursor.at] == "(":
            self._inputs(graph)
        cursor.expect("=>")
        outputs = self._entries()
        infos = self._infos(graph)
        self._nodes(graph)
        self._outputs(graph, outputs)
        self._describe(graph, infos, inputs=graph.inputs)
        if told is not None:
            self._annotate(graph, told)
            if note is None:
                told.done()
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
                self._told(value, entry)
            graph.inputs.append(value)
        self._cursor.expect("=>")
        outputs = self._entries()
        infos = [e for e in outputs if e.type is not None] + self._function_infos()
        self._nodes(graph)
        self._describe(graph, infos, first=len(inputs))
        graph.outputs.extend(self._scope.read(e.name) for e in outputs)
        graph.clashes = self._scope.clashes
        self._depth -= 1
        return graph

    def node(self) -> Node:
        """Read a node: `[label] outputs = domain.Op:overload <attributes> (inputs)`."""
        cursor = self._cursor
        note = read_note(cursor) if cursor.tokens[cursor.at] == "@" else None
        label = self._label() if cursor.tokens[cursor.at] == "[" else None
        outputs = self._names()
        cursor.expect("=", "a node is written `y = Op (x)`")
        path = [cursor.name("an operator")]
        while cursor.skip("."):
            path.append(cursor.name("an operator"))
        op, domain = path.pop(), ".".join(filter(None, path))
        overload = cursor.name("the name of an overload") if cursor.skip(":") else ""
        attributes: dict[str, Attribute] | None = None
        if cursor.tokens[cursor.at] == "<":
            attributes = read_attributes(cursor, self.graph)
        inputs = self._arguments()
        if attributes is None and cursor.tokens[cursor.at] == "<":
            attributes = read_attributes(cursor, self.graph)
        scope = self._scope
        reads = [scope.read(name) for name in inputs]
        writes = [scope.define(name) if name else None for name in outputs]
        node = Node(op, reads, writes, attributes, domain=domain, name=label or "", overload=overload)
        if note is not None:
            _annotate_node(node, note)
        if label is not None and not label:
            _spell_empty(node, ("name",))
        return node

    def parameters(self) -> dict[str, Attribute | None]:
        """Read the attributes that a function takes: names, some with a default."""
        cursor = self._cursor
        found: dict[str, Attribute | None] = {}
        if not cursor.skip("<"):
            return found
        while True:
            note, start = read_note(cursor), cursor.at
            name = cursor.name("the name of an attribute")
            if name in found:
                raise cursor.error(f"attribute {quote(name)} is given twice", start)
            told = note is not None or cursor.tokens[cursor.at] in {":", "="}
            found[name] = read_attribute(cursor, name, self.graph, note) if told else None
            if not cursor.skip(","):
                break
        cursor.expect(">", "attributes are separated by commas")
        return found

    def _arguments(self) -> list[str]:
        cursor = self._cursor
        cursor.expect("(", "the inputs stand in parentheses, even if there are none")
        inputs = self._names()
        cursor.expect(")", "inputs are names separated by commas")
        return inputs

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
            value = self._told(self._scope.define(entry.name), entry)
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
        constant = read_constant(self._cursor, entry.type, entry.start, note=entry.note)
        graph.set_initializer(value, constant)
        if entry.note is not None:
            value.name = _renamed(value, entry.note)
            entry.note.done()

    def _outputs(self, graph: Graph, entries: Iterable[Entry]) -> None:
        """Read the outputs; what is said of a value that is described already is kept beside it."""
        described = set(graph.inputs)
        for place, entry in enumerate(entries):
            value = self._scope.read(entry.name) or Value()
            if value in described or self._scope.own(entry.name) is not value:
                graph.output_infos[place] = (value, self._told(Value(entry.name), entry))
            else:
                described.add(self._told(value, entry))
            graph.outputs.append(value)

    def _describe(
        self, graph: Graph, infos: Iterable[Entry], *, inputs: Iterable[Value] = (), first: int = 0
    ) -> None:
        """Read what is told of values; what is told of the `inputs`, and of typed outputs, is only kept."""
        outputs = {v: i for i, v in enumerate(graph.outputs) if v is not None and i not in graph.output_infos}
        taken = {*inputs, *(v for v in outputs if v.type is not None)}
        stale: list[Value] = []
        for place, entry in enumerate(infos, first):
            value = self._scope.own(entry.name)
            if value is None or value.value_info_index is not None or value in taken:
                value = Value(entry.name)
                stale.append(value)
            elif value in outputs:
                graph.output_infos[outputs[value]] = (value, _description(value))
            value.value_info_index = place
            self._told(value, entry)
        graph.orphan_value_info = tuple(stale)

    def _told(self, value: Value, entry: Entry) -> Value:
        """Give a value what an entry says of it."""
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
        """Give a graph what its note says."""
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
        """Go one graph deeper; raises ParseError where the limit is passed."""
        self._depth += 1
        try:
            check_depth(self._depth)
        except LimitError as error:
            raise self._cursor.error(str(error)) from None


def spread_empty(graph: Graph, note: Note) -> None:
    """Give every node of a graph the empty fields that its note says they have in common."""
    common = note.fields("empty_in_nodes", NodeProto)
    for node in graph if common else ():
        _spell_empty(node, common)


def _spell_empty(node: Node, fields: tuple[str, ...]) -> None:
    residue = node.residue or Residue()
    node.residue = residue._replace(empty=(*fields, *residue.empty))


def _description(value: Value) -> Value:
    """Return what an output says of its value, apart from it."""
    made = Value(value.name, value.type)
    made.doc, made.metadata, made.residue = value.doc, value.metadata, value.residue
    return made


def _renamed(value: Value, note: Note) -> str:
    """Return the name of a value: that of the text, unless the note says that this is the text's own."""
    name = note.name()
    return value.name if name is None else name


def _annotate_node(node: Node, note: Note) -> None:
    """Give a node what its note says."""
    node.doc, node.metadata = note.text("doc_string"), note.pairs("metadata_props")
    node.devices = read_devices(note, node)
    node.residue = note.residue(NodeProto)
    note.done()
