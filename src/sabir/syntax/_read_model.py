"""Whole texts: a model with its header, a function, a graph or a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sabir.base import run_with_limits, without_collector
from sabir.ir import DeviceConfiguration, Function, Model, NameScope, Residue, TrainingInfo, Value
from sabir.proto import DeviceConfigurationProto, FunctionProto, ModelProto, TrainingInfoProto
from sabir.syntax._imports import bind_imports
from sabir.syntax._read_graph import GraphParser, spread_empty
from sabir.syntax._read_notes import read_note
from sabir.syntax._read_tensors import read_pairs
from sabir.syntax._tokens import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.base import Limits
    from sabir.ir import Graph, Node
    from sabir.syntax._external import Opener
    from sabir.syntax._read_notes import Note

    HeaderKeys = Mapping[str, tuple[str, Callable[[Cursor], Any]]]

_Read = TypeVar("_Read")


def parse(text: str, *, opener: Opener | None = None, limits: Limits | None = None) -> Model:
    """Return the model that a text describes; raises ParseError, which says where.

    A node input that names nothing is a value without a source. Fields that are not in the header have
    the defaults of `Model`. `opener` opens data in other files: it is called with the entries that
    locate it, and the number of bytes.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... main (float[N] x) => (float[N] y) { y = Softmax <axis = 0> (x) }''')
    >>> model.graph[0].attributes['axis'].value
    0
    """
    return _read(text, _model, opener, limits)


def parse_graph(text: str, *, limits: Limits | None = None) -> Graph:
    """Return the graph that a text describes; raises ParseError.

    >>> parse_graph('g (float[N] x) => (float[N] y) { y = Relu (x) }').inputs[0].name
    'x'
    """
    return _read(text, lambda cursor: GraphParser(cursor).graph(), None, limits, "graph")


def parse_function(text: str, *, limits: Limits | None = None) -> Function:
    """Return the function that a text describes; raises ParseError.

    >>> function = parse_function('''<domain: "d", opset_import: ["" : 21]>
    ... twice (x) => (y) { y = Add (x, x) }''')
    >>> function.name
    'twice'
    """
    return _read(text, _function, None, limits, "function")


def parse_node(text: str, *, limits: Limits | None = None) -> Node:
    """Return the node that a text describes, in no graph; its inputs have no source. Raises ParseError.

    >>> parse_node('y = Relu (x)').op
    'Relu'
    """
    return _read(text, lambda cursor: GraphParser(cursor).node(), None, limits, "node")


def _read(
    text: str,
    read: Callable[[Cursor], _Read],
    opener: Opener | None,
    limits: Limits | None,
    what: str = "model",
) -> _Read:
    return run_with_limits(limits, _read_all, text, read, opener, what)


def _read_all(text: str, read: Callable[[Cursor], _Read], opener: Opener | None, what: str) -> _Read:
    with without_collector():
        cursor = Cursor(text, opener)
        try:
            found = read(cursor)
        except RecursionError:
            raise cursor.error("graphs are nested too deep for this Python") from None
        cursor.expect_end(what)
        return found


def _model(cursor: Cursor) -> Model:
    note = read_note(cursor)
    model, reader, main = Model(), GraphParser(cursor), NameScope()
    if note is None or cursor.tokens[cursor.at] == "<":
        fields, in_header = _header(cursor, _MODEL_FIELDS)
        from_note = None if note is None else note.residue(ModelProto)
        residue = _bind(fields, _joined(in_header, from_note), ModelProto)
        model = Model(**fields, residue=residue)
        _annotate_model(model, note)
        note = None
    model.graph = reader.graph(note, main)
    if note is not None:
        note.done()
    while cursor.tokens[cursor.at]:
        note = read_note(cursor)
        if cursor.tokens[cursor.at] == "@":
            model.training.append(_training(cursor, reader, main, note))
        else:
            model.functions.append(_function(cursor, note))
    return model


def _annotate_model(model: Model, note: Note | None) -> None:
    if note is None:
        return
    for device in note.objects("configuration"):
        name, count = device.name() or "", device.number("num_devices") or 0
        wire = device.message("wire", DeviceConfigurationProto)
        model.devices.append(DeviceConfiguration(name, count, device.texts("device"), wire))
        device.done()
    note.done()


def _joined(in_header: Residue, from_note: Residue | None) -> Residue:
    """Return the residue from a header, which has the empty fields in it, and from the note before it."""
    if from_note is None:
        return in_header
    return from_note._replace(empty=(*in_header.empty, *from_note.empty))


def _bind(fields: dict[str, Any], residue: Residue, message_class: Any) -> Residue | None:
    """Reduce the imports in a header to those that apply, and return the residue with the others."""
    if "opsets" in fields:
        fields["opsets"], residue = bind_imports(fields["opsets"], message_class, residue)
    return residue if any(residue) else None


def _function(cursor: Cursor, note: Note | None = None) -> Function:
    note = read_note(cursor) if note is None else note
    fields, in_header = _header(cursor, _FUNCTION_FIELDS)
    doc = fields.pop("doc", "")
    name = cursor.name("the name of a function")
    reader = GraphParser(cursor)
    attributes = reader.parameters()
    graph = reader.body(name)
    graph.doc = doc
    from_note = None if note is None else note.residue(FunctionProto)
    residue = _bind(fields, _joined(in_header, from_note), FunctionProto)
    if note is not None:
        graph.metadata = note.pairs("metadata_props")
        spread_empty(graph, note)
        note.done()
    return Function(name, graph=graph, attributes=attributes, residue=residue, **fields)


def _training(cursor: Cursor, reader: GraphParser, main: NameScope, note: Note | None) -> TrainingInfo:
    """Read `@training {initialization: graph, algorithm: graph, update_binding: ["w": "new_w"]}`."""
    cursor.expect("@")
    cursor.expect("training")
    cursor.expect("{")
    scopes = {key: NameScope(main) for key in ("initialization", "algorithm")}
    graphs: dict[str, Graph] = {}
    pairs: dict[str, list[tuple[str, str]]] = {}
    while cursor.tokens[cursor.at] != "}":
        key = cursor.tokens[cursor.at]
        if key in graphs or key in pairs:
            raise cursor.error(f"{key} is there twice")
        if key not in _TRAINING:
            raise cursor.unknown("a key", _TRAINING)
        cursor.at += 1
        cursor.expect(":")
        if key in scopes:
            graphs[key] = reader.graph(scope=scopes[key])
        else:
            pairs[key] = read_pairs(cursor)
        if not cursor.skip(","):
            break
    cursor.expect("}", "entries are separated by commas")

    def bound(key: str, source: str) -> list[tuple[Value, Value]]:
        read, of = scopes["algorithm"].read, scopes[source].read
        return [(read(name) or Value(), of(other) or Value()) for name, other in pairs.get(key, ())]

    training = TrainingInfo(
        graphs.get("initialization"),
        graphs.get("algorithm"),
        bound("initialization_binding", "initialization"),
        bound("update_binding", "algorithm"),
    )
    if note is not None:
        training.residue = note.residue(TrainingInfoProto)
        note.done()
    return training


def _header(cursor: Cursor, known: HeaderKeys) -> tuple[dict[str, Any], Residue]:
    """Read `<key: value, ...>`, if it is there, into keyword arguments; the residue has the empty keys."""
    fields: dict[str, Any] = {}
    empty: list[str] = []
    if not cursor.skip("<"):
        return fields, Residue()
    while True:
        word = cursor.tokens[cursor.at]
        if word not in known:
            raise cursor.unknown("a header key", known)
        field, read = known[word]
        if field in fields:
            raise cursor.error(f"{word} is there twice")
        cursor.at += 1
        cursor.expect(":")
        fields[field] = read(cursor)
        if word in _CAN_BE_EMPTY and not fields[field]:
            empty.append(word)
        if not cursor.skip(","):
            break
    cursor.expect(">", "header entries are separated by commas")
    return fields, Residue(empty=tuple(empty))


def _opsets(cursor: Cursor) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    cursor.expect("[")
    if cursor.skip("]"):
        return found
    while True:
        domain = cursor.string("a domain")
        cursor.expect(":")
        found.append((domain, cursor.integer("the version of the domain")))
        if not cursor.skip(","):
            break
    cursor.expect("]")
    return found


def _metadata(cursor: Cursor) -> dict[str, str]:
    start = cursor.at
    pairs = read_pairs(cursor)
    found = dict(pairs)
    if len(found) < len(pairs):
        raise cursor.error("a metadata key is there twice", start)
    return found


def _text(cursor: Cursor) -> str:
    return cursor.string("a string")


def _number(cursor: Cursor) -> int:
    return cursor.integer("an integer")


_FUNCTION_FIELDS: HeaderKeys = {
    "domain": ("domain", _text),
    "overload": ("overload", _text),
    "opset_import": ("opsets", _opsets),
    "doc_string": ("doc", _text),
}
_MODEL_FIELDS: HeaderKeys = {
    "ir_version": ("ir_version", _number),
    "opset_import": ("opsets", _opsets),
    "producer_name": ("producer_name", _text),
    "producer_version": ("producer_version", _text),
    "domain": ("domain", _text),
    "model_version": ("version", _number),
    "doc_string": ("doc", _text),
    "metadata_props": ("metadata", _metadata),
}
# keys that the standard syntax can have with an empty value
_CAN_BE_EMPTY = frozenset({
    "producer_name", "producer_version", "domain", "model_version", "doc_string", "overload",
})  # fmt: skip
_TRAINING = ("initialization", "algorithm", "initialization_binding", "update_binding")
