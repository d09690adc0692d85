"""Calls: `[label] outputs = domain.Op:overload <attributes> (inputs)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import quote
from sabir.ir import Residue
from sabir.proto import NodeProto
from sabir.syntax._read_attributes import read_attribute, read_attributes
from sabir.syntax._read_notes import read_devices, read_note
from sabir.syntax._words import LETTERS

if TYPE_CHECKING:
    from sabir.ir import Attribute, Node
    from sabir.syntax._read_attributes import ReadGraph
    from sabir.syntax._read_notes import Note
    from sabir.syntax._tokens import Cursor


class Call(NamedTuple):
    """A node as it is written, with names in the place of values; `label` is None where there is none."""

    outputs: list[str]
    domain: str
    op: str
    overload: str
    attributes: dict[str, Attribute] | None
    inputs: list[str]
    label: str | None
    note: Note | None


def read_call(cursor: Cursor, graph: ReadGraph) -> Call:
    """Read a node; `graph` reads a subgraph at the cursor. Raises ParseError."""
    note = read_note(cursor) if cursor.tokens[cursor.at] == "@" else None
    label = _read_label(cursor) if cursor.tokens[cursor.at] == "[" else None
    outputs = _read_names(cursor)
    cursor.expect("=", "a node is written `y = Op (x)`")
    path = [cursor.name("an operator")]
    while cursor.skip("."):
        path.append(cursor.name("an operator"))
    op, domain = path.pop(), ".".join(filter(None, path))
    overload = cursor.name("the name of an overload") if cursor.skip(":") else ""
    attributes: dict[str, Attribute] | None = None
    if cursor.tokens[cursor.at] == "<":
        attributes = read_attributes(cursor, graph)
    cursor.expect("(", "the inputs are in parentheses, even if there are none")
    inputs = _read_names(cursor)
    cursor.expect(")", "inputs are names separated by commas")
    if attributes is None and cursor.tokens[cursor.at] == "<":
        attributes = read_attributes(cursor, graph)
    return Call(outputs, domain, op, overload, attributes, inputs, label, note)


def read_parameters(cursor: Cursor, graph: ReadGraph) -> dict[str, Attribute | None]:
    """Read the attributes of a function, some with a default; raises ParseError."""
    found: dict[str, Attribute | None] = {}
    if not cursor.skip("<"):
        return found
    while True:
        note, start = read_note(cursor), cursor.at
        name = cursor.name("the name of an attribute")
        if name in found:
            raise cursor.error(f"attribute {quote(name)} is there twice", start)
        has_default = note is not None or cursor.tokens[cursor.at] in {":", "="}
        found[name] = read_attribute(cursor, name, graph, note) if has_default else None
        if not cursor.skip(","):
            break
    cursor.expect(">", "attributes are separated by commas")
    return found


def annotate_node(node: Node, note: Note) -> None:
    """Give a node the content of its note."""
    node.doc, node.metadata = note.text("doc_string"), note.pairs("metadata_props")
    node.devices = read_devices(note, node)
    node.residue = note.residue(NodeProto)
    note.done()


def add_empty(node: Node, fields: tuple[str, ...]) -> None:
    """Note that a node has these fields, though empty."""
    residue = node.residue or Residue()
    node.residue = residue._replace(empty=(*fields, *residue.empty))


def _read_label(cursor: Cursor) -> str:
    cursor.expect("[")
    label = "" if cursor.tokens[cursor.at] == "]" else cursor.name("the name of a node")
    cursor.expect("]")
    return label


def _read_names(cursor: Cursor) -> list[str]:
    """Read names, each of which may be left out before a comma: `(x,)` has one, `(,x)` has two."""
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
