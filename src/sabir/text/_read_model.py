"""Whole texts: a model with its header, a function, a graph or a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import quote
from sabir.ir import Function, Model
from sabir.text._read_graph import GraphReader
from sabir.text._read_tensors import read_pairs
from sabir.text._tokens import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.ir import Graph, Node

    Fields = Mapping[str, tuple[str, Callable[[Cursor], Any]]]


def parse(text: str) -> Model:
    """Return the model that a text describes; raises ParseError, which says where.

    A node input that names nothing is a value without a source. Where the header is silent, the fields
    have the defaults of `Model`.
    """
    cursor = Cursor(text)
    fields = _header(cursor, _MODEL_FIELDS)
    model = Model(GraphReader(cursor).graph(), **fields)
    while cursor.tokens[cursor.at]:
        model.functions.append(_function(cursor))
    return model


def parse_graph(text: str) -> Graph:
    """Return the graph that a text describes; raises ParseError."""
    cursor = Cursor(text)
    graph = GraphReader(cursor).graph()
    cursor.expect_end("graph")
    return graph


def parse_function(text: str) -> Function:
    """Return the function that a text describes; raises ParseError."""
    cursor = Cursor(text)
    function = _function(cursor)
    cursor.expect_end("function")
    return function


def parse_node(text: str) -> Node:
    """Return the node that a text describes, in no graph; its inputs have no source. Raises ParseError."""
    cursor = Cursor(text)
    node = GraphReader(cursor).node()
    cursor.expect_end("node")
    return node


def _function(cursor: Cursor) -> Function:
    fields = _header(cursor, _FUNCTION_FIELDS)
    doc = fields.pop("doc", "")
    name = cursor.name("the name of a function")
    reader = GraphReader(cursor)
    attributes = reader.parameters()
    graph = reader.body(name)
    graph.doc = doc
    return Function(name, graph=graph, attributes=attributes, **fields)


def _header(cursor: Cursor, known: Fields) -> dict[str, Any]:
    """Read `<key: value, ...>`, if it is there, into keyword arguments."""
    fields: dict[str, Any] = {}
    if not cursor.skip("<"):
        return fields
    while True:
        word = cursor.tokens[cursor.at]
        if word not in known:
            raise cursor.expected("a header key", f"one of {', '.join(known)}")
        field, read = known[word]
        if field in fields:
            raise cursor.error(f"{word} is given twice")
        cursor.at += 1
        cursor.expect(":")
        fields[field] = read(cursor)
        if not cursor.skip(","):
            break
    cursor.expect(">", "header entries are separated by commas")
    return fields


def _opsets(cursor: Cursor) -> dict[str, int]:
    found: dict[str, int] = {}
    cursor.expect("[")
    if cursor.skip("]"):
        return found
    while True:
        start = cursor.at
        domain = cursor.string("a domain")
        if domain in found:
            raise cursor.error(f"domain {quote(domain)} is imported twice", start)
        cursor.expect(":")
        found[domain] = cursor.integer("the version of the domain")
        if not cursor.skip(","):
            break
    cursor.expect("]")
    return found


def _metadata(cursor: Cursor) -> dict[str, str]:
    start = cursor.at
    pairs = read_pairs(cursor)
    found = dict(pairs)
    if len(found) < len(pairs):
        raise cursor.error("a metadata key is given twice", start)
    return found


def _text(cursor: Cursor) -> str:
    return cursor.string("a string")


def _number(cursor: Cursor) -> int:
    return cursor.integer("an integer")


_FUNCTION_FIELDS: Fields = {
    "domain": ("domain", _text),
    "overload": ("overload", _text),
    "opset_import": ("opsets", _opsets),
    "doc_string": ("doc", _text),
}
_MODEL_FIELDS: Fields = {
    "ir_version": ("ir_version", _number),
    "opset_import": ("opsets", _opsets),
    "producer_name": ("producer_name", _text),
    "producer_version": ("producer_version", _text),
    "domain": ("domain", _text),
    "model_version": ("version", _number),
    "doc_string": ("doc", _text),
    "metadata_props": ("metadata", _metadata),
}
