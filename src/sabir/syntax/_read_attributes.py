"""Attributes: `<axis: int = 1, pads = [0, 0], value = float[2] {1, 2}>`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sabir.base import quote
from sabir.ir import Attribute, SparseTensor, SparseTensorType
from sabir.proto import AttributeProto
from sabir.syntax._numbers import BadNumberError, one_float
from sabir.syntax._read_notes import at_base64, read_base64, read_note
from sabir.syntax._read_tensors import read_constant, read_named, refuse_elided
from sabir.syntax._read_types import at_type, noted_type, read_bare_type, unknown_type
from sabir.syntax._words import ATTRIBUTE_TYPE_OF, ITEM_OF, LETTERS, LIST_OF, is_float_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import AttributeType, Graph
    from sabir.syntax._read_notes import Note
    from sabir.syntax._tokens import Cursor

    ReadGraph = Callable[[Note | None], Graph]
    Typed = tuple[AttributeType, Any]


_TYPED: frozenset[AttributeType | None] = frozenset({"type", "tensor", "sparse_tensor"})  # begin with a type


def read_attributes(cursor: Cursor, graph: ReadGraph) -> dict[str, Attribute]:
    """Read attributes between angle brackets; `graph` reads a graph at the cursor. Raises ParseError."""
    found: dict[str, Attribute] = {}
    cursor.expect("<")
    while True:
        note, start = read_note(cursor), cursor.at
        name = cursor.name("the name of an attribute")
        if name in found:
            raise cursor.error(f"attribute {quote(name)} is given twice", start)
        found[name] = read_attribute(cursor, name, graph, note)
        if not cursor.skip(","):
            break
    cursor.expect(">", "attributes are separated by commas")
    return found


def read_attribute(cursor: Cursor, name: str, graph: ReadGraph, note: Note | None = None) -> Attribute:
    """Read what follows the name of an attribute: its type, perhaps, and its value; raises ParseError."""
    told: AttributeType | None = None
    if cursor.skip(":"):
        told = ATTRIBUTE_TYPE_OF.get(cursor.tokens[cursor.at])
        if told is None:
            raise cursor.unknown("an attribute type", filter("undefined".__ne__, ATTRIBUTE_TYPE_OF))
        cursor.at += 1
    cursor.expect("=")
    found = _told(cursor, name, told, graph)
    if note is None:
        return found
    ref = found.ref or note.text("ref_attr_name")
    found = replace(found, doc=note.text("doc_string"), ref=ref, residue=note.residue(AttributeProto))
    note.done()
    return found


def _told(cursor: Cursor, name: str, told: AttributeType | None, graph: ReadGraph) -> Attribute:
    word, following = cursor.tokens[cursor.at], cursor.tokens[cursor.at + 1]
    if word == "[":
        return Attribute(name, *_list(cursor, told, graph))
    if word == "?" and told is not None and not at_type(cursor):
        cursor.at += 1
        return Attribute(name, told, None)
    if word == "@" and following != "{":
        cursor.at += 1
        start = cursor.at
        ref = cursor.name("the attribute to take the value from")
        if not ref:
            raise cursor.error("a reference needs the name of an attribute", start)
        return Attribute(name, told or "undefined", None, ref=ref)
    return Attribute(name, *_value(cursor, told, graph))


def _list(cursor: Cursor, told: AttributeType | None, graph: ReadGraph) -> Typed:
    refuse_elided(cursor)
    cursor.expect("[")
    if cursor.tokens[cursor.at] == "]":
        if told not in ITEM_OF:
            raise cursor.error("an empty list needs a list type, such as `name: ints = []`")
        cursor.at += 1
        return told, ()
    # the first item decides where the type is not told
    kind, first = _value(cursor, ITEM_OF.get(told, told) if told else None, graph)
    values = [first]
    while cursor.skip(","):
        values.append(_value(cursor, kind, graph)[1])
    cursor.expect("]", "items are separated by commas")
    return LIST_OF[kind], tuple(values)


def _value(cursor: Cursor, wanted: AttributeType | None, graph: ReadGraph) -> Typed:
    note, start = read_note(cursor), cursor.at
    word = cursor.tokens[start]
    first = word[:1]
    if word == "{":
        refuse_elided(cursor)
    if word == "?" and not at_type(cursor):
        cursor.at += 1
        found: Typed = "type", None
    elif at_base64(cursor):
        found = _bytes(cursor, wanted)
    elif first == '"' and cursor.tokens[start + 1] not in {"(", "=>"}:
        found = "string", _string(cursor)
    elif at_type(cursor):
        found = _type_or_tensor(cursor, note)
    elif first == '"' or (first in LETTERS and not is_float_word(word)):
        _require_graph(cursor, wanted)
        found = "graph", graph(note)
    else:
        found = _number(cursor, word, wanted)
    if wanted is not None and found[0] != wanted:
        raise cursor.error(f"expected a value of type {wanted}, found one of type {found[0]}", start)
    if note is not None:
        note.done()
    return found


def _require_graph(cursor: Cursor, wanted: AttributeType | None) -> None:
    """Raise ParseError unless the word that stands here is the name of a graph: say what else it may be."""
    following = cursor.tokens[cursor.at + 1]
    if wanted in {None, "graph"} and following in {"(", "=>"}:
        return
    if wanted in _TYPED or (wanted is None and following[:1] in {"[", "{"}):
        raise unknown_type(cursor)
    raise cursor.expected(
        f"a value of type {wanted}" if wanted else "the value of an attribute",
        "strings stand in double quotes" if wanted in {None, "string"} else "",
    )


def _bytes(cursor: Cursor, wanted: AttributeType | None) -> Typed:
    """Read a string that is no UTF-8, or a tensor that nothing but its message tells."""
    if wanted == "tensor":
        return "tensor", read_constant(cursor, None, cursor.at)
    return "string", read_base64(cursor)


def _number(cursor: Cursor, word: str, wanted: AttributeType | None) -> Typed:
    if wanted != "float" and word.removeprefix("-").isdigit():
        return "int", cursor.integer("an integer")
    try:
        value = one_float(word)
    except BadNumberError as bad:
        raise cursor.expected(
            "the value of an attribute" if bad.reason == "a number" else bad.reason
        ) from None
    cursor.at += 1
    return "float", value


def _string(cursor: Cursor) -> str | bytes:
    """Read a string; bytes that are no UTF-8 stand in a text as Python's surrogate escapes."""
    content = cursor.literal("a string")
    if content.isascii():
        return content
    try:
        raw = content.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise cursor.error(
            "a string must be valid Unicode, but holds a lone surrogate", cursor.at - 1
        ) from None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _type_or_tensor(cursor: Cursor, note: Note | None) -> Typed:
    start = cursor.at
    declared = read_bare_type(cursor)
    parts = at_type(cursor) or at_base64(cursor) or cursor.tokens[cursor.at] == "@"
    if isinstance(declared, SparseTensorType) and parts:
        return "sparse_tensor", read_constant(cursor, declared, start, note=note)
    following = cursor.tokens[cursor.at]
    named = following[:1] == '"' or following[:1] in LETTERS
    if not named and following[:1] not in {"{", "=", "["}:
        return "type", noted_type(declared, note)
    constant = read_named(cursor, declared, start, note)
    return "sparse_tensor" if isinstance(constant, SparseTensor) else "tensor", constant
