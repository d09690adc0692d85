"""Types and shapes: `float[N,3]`, `seq(map(int64, string))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import (
    UNDEFINED,
    Expr,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    parse_dim,
    read_dim,
    symbol,
)
from sabir.text._words import ELEMENT_WORDS, LETTERS, TYPE_WORDS

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Dim, Shape, Type
    from sabir.text._tokens import Cursor


def at_type(cursor: Cursor) -> bool:
    """Return whether the next word begins a type."""
    return cursor.tokens[cursor.at] in TYPE_WORDS


def read_type(cursor: Cursor) -> Type:
    """Read a type; raises ParseError."""
    word = cursor.tokens[cursor.at]
    kind = ELEMENT_WORDS.get(word)
    if kind is not None:
        cursor.at += 1
        return TensorType(kind, _shape(cursor))
    if word not in TYPE_WORDS:
        raise cursor.expected("a type", "such as float[N,3], seq(int64) or optional(string[])")
    cursor.enter("types")
    cursor.at += 1
    cursor.expect("(")
    found = _opaque(cursor) if word == "opaque" else _compound(cursor, word)
    cursor.expect(")")
    cursor.leave()
    return found


def _compound(cursor: Cursor, word: str) -> Type:
    if word == "seq":
        return SequenceType(_item(cursor))
    if word == "optional":
        return OptionalType(_item(cursor))
    if word == "sparse_tensor":
        return SparseTensorType(_element(cursor), _shape(cursor))
    key = UNDEFINED if cursor.skip("?") else _element(cursor)
    cursor.expect(",")
    return MapType(key, _item(cursor))


def _item(cursor: Cursor) -> Type | None:
    return None if cursor.skip("?") else read_type(cursor)


def _element(cursor: Cursor) -> ElementType:
    kind = ELEMENT_WORDS.get(cursor.tokens[cursor.at])
    if kind is None:
        raise cursor.expected("an element type", "such as float, int64 or string")
    cursor.at += 1
    return kind


def _opaque(cursor: Cursor) -> OpaqueType:
    if cursor.tokens[cursor.at] == ")":
        return OpaqueType()
    first = dotted(cursor, "the name of an opaque type")
    if cursor.skip(","):
        return OpaqueType(first, dotted(cursor, "the name of an opaque type"))
    return OpaqueType("", first)


def dotted(cursor: Cursor, what: str) -> str:
    """Read names joined by dots, or one quoted name."""
    parts = [cursor.name(what)]
    while cursor.skip("."):
        parts.append(cursor.name("a name after the dot"))
    return ".".join(parts)


def _shape(cursor: Cursor) -> Shape | None:
    if not cursor.skip("["):
        return ()
    if cursor.skip("]"):
        return None
    dims = [_dim(cursor)]
    while cursor.skip(","):
        dims.append(_dim(cursor))
    cursor.expect("]", "dimensions are separated by commas")
    return tuple(dims)


def _dim(cursor: Cursor) -> Dim:
    word = cursor.tokens[cursor.at]
    first = word[:1]
    if first == '"':
        name = cursor.string("the text of a dimension")
        return read_dim(name) if name else None
    if first == "-" or (word and cursor.tokens[cursor.at + 1] not in {",", "]"}):
        return _expression(cursor)
    if cursor.skip("?"):
        return None
    if first in LETTERS:
        cursor.at += 1
        return symbol(word)
    return cursor.integer("a dimension: a number, a name, an expression or ?")


def _expression(cursor: Cursor) -> Dim:
    """Read an expression without quotes, up to the comma or bracket that ends the dimension."""
    start, depth = cursor.at, 0
    while True:
        word = cursor.tokens[cursor.at]
        if not word or (depth == 0 and word in {",", "]"}):
            break
        depth += (word == "(") - (word == ")")
        cursor.at += 1
    text = " ".join(cursor.tokens[start : cursor.at])
    value = parse_dim(text) if text else None
    if value is None or (isinstance(value, Expr) and value == symbol(text)):
        cursor.at = start
        raise cursor.expected("a dimension: a number, a name, an expression or ?", "quote any other text")
    return value
