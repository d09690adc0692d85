"""Attributes: `<axis: int = 1, pads = [0, 0], value = float[2] {1, 2}>`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import quote
from sabir.ir import UNDEFINED, Attribute, SparseTensorType, TensorType
from sabir.text._numbers import BadNumberError, one_float
from sabir.text._read_tensors import read_constant
from sabir.text._read_types import at_type, read_type
from sabir.text._words import ATTRIBUTE_TYPE_OF, ITEM_OF, LETTERS, LIST_OF, TYPE_WORDS, is_float_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import AttributeType, Graph
    from sabir.text._tokens import Cursor

    ReadGraph = Callable[[], Graph]
    Typed = tuple[AttributeType, Any]


def read_attributes(cursor: Cursor, graph: ReadGraph) -> dict[str, Attribute]:
    """Read attributes between angle brackets; `graph` reads a graph at the cursor. Raises ParseError."""
    found: dict[str, Attribute] = {}
    cursor.expect("<")
    while True:
        start = cursor.at
        name = cursor.name("the name of an attribute")
        if name in found:
            raise cursor.error(f"attribute {quote(name)} is given twice", start)
        found[name] = read_attribute(cursor, name, graph)
        if not cursor.skip(","):
            break
    cursor.expect(">", "attributes are separated by commas")
    return found


def read_attribute(cursor: Cursor, name: str, graph: ReadGraph) -> Attribute:
    """Read what follows the name of an attribute: its type, perhaps, and its value; raises ParseError."""
    told: AttributeType | None = None
    if cursor.skip(":"):
        told = ATTRIBUTE_TYPE_OF.get(cursor.tokens[cursor.at])
        if told is None:
            raise cursor.expected("an attribute type", f"one of {', '.join(ATTRIBUTE_TYPE_OF)}")
        cursor.at += 1
    cursor.expect("=")
    if cursor.tokens[cursor.at] == "[":
        return Attribute(name, *_list(cursor, told, graph))
    if cursor.skip("@"):
        start = cursor.at
        ref = cursor.name("the attribute to take the value from")
        if not ref:
            raise cursor.error("a reference needs the name of an attribute", start)
        return Attribute(name, told or "undefined", None, ref=ref)
    return Attribute(name, *_value(cursor, told, graph))


def _list(cursor: Cursor, told: AttributeType | None, graph: ReadGraph) -> Typed:
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
    start = cursor.at
    word = cursor.tokens[start]
    first = word[:1]
    if word == "?":
        cursor.at += 1
        found: Typed = "type", TensorType(UNDEFINED)
    elif first == '"' and cursor.tokens[start + 1] not in {"(", "=>"}:
        found = "string", _string(cursor)
    elif word in TYPE_WORDS:
        found = _type_or_tensor(cursor)
    elif first == '"' or (first in LETTERS and not is_float_word(word)):
        found = "graph", graph()
    else:
        found = _number(cursor, word, wanted)
    if wanted is not None and found[0] != wanted:
        raise cursor.error(f"expected a value of type {wanted}, found one of type {found[0]}", start)
    return found


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


def _type_or_tensor(cursor: Cursor) -> Typed:
    start = cursor.at
    declared = read_type(cursor)
    following = cursor.tokens[cursor.at]
    if isinstance(declared, SparseTensorType) and at_type(cursor):
        return "sparse_tensor", read_constant(cursor, declared, start)
    named = following[:1] == '"' or following[:1] in LETTERS
    if not named and following not in {"{", "=", "["}:
        return "type", declared
    if named:
        cursor.name("the name of a tensor")
    cursor.skip("=")
    constant = read_constant(cursor, declared, start)
    return "sparse_tensor" if isinstance(declared, SparseTensorType) else "tensor", constant
