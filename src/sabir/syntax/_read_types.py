"""Types and shapes: `float[N,3]`, `seq(map(int64, string))`."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.base import quote, suggest
from sabir.elements import find_element
from sabir.ir import (
    UNDEFINED,
    Expr,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    TypeNote,
    parse_dim,
    read_dim,
    symbol,
    unknown_element,
)
from sabir.proto import TypeProto
from sabir.syntax._read_notes import read_note
from sabir.syntax._words import ELEMENT_WORDS, LETTERS, TYPE_SYNONYMS, TYPE_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.base import ParseError
    from sabir.elements import ElementType
    from sabir.ir import Dim, Shape, Type
    from sabir.syntax._read_notes import Note
    from sabir.syntax._tokens import Cursor

_UNUSUAL_WORDS = frozenset({"?", "undefined"})
_SUCH_AS = "such as float[N,3], seq(int64) or optional(string[])"


def at_type(cursor: Cursor) -> bool:
    """Return whether the next word begins a type."""
    word = cursor.tokens[cursor.at]
    return word in TYPE_WORDS or (word in _UNUSUAL_WORDS and _at_unusual_element(cursor))


def at_unknown_type(cursor: Cursor) -> bool:
    """Return whether the next word is in the place of a type: before a name, a shape or a parenthesis."""
    word, following = cursor.tokens[cursor.at], cursor.tokens[cursor.at + 1]
    return word[:1] in LETTERS and (following[:1] in LETTERS or following[:1] in {"[", "(", '"'})


def unknown_type(cursor: Cursor, known: Iterable[str] = TYPE_WORDS) -> ParseError:
    """Return the error for a next word that is not a type, with the most similar one."""
    word = cursor.tokens[cursor.at]
    if word[:1] not in LETTERS or word in TYPE_WORDS:
        return cursor.expected("a type" if known is TYPE_WORDS else "an element type", _SUCH_AS)
    if word == "tensor":
        return cursor.error("unknown type 'tensor'; the type of a tensor is its element type: float[N,3]")
    synonym = TYPE_SYNONYMS.get(word)
    near = f"; is it {synonym!r}?" if synonym in {*known} else suggest(word, known)
    return cursor.error(f"unknown type {quote(word)}{near or f'; a type is {_SUCH_AS}'}")


def read_type(cursor: Cursor) -> Type:
    """Read a type and the note before it; raises ParseError."""
    note = read_note(cursor)
    found = noted_type(read_bare_type(cursor), note)
    if note is not None:
        note.done()
    return found


def noted_type(type_: Type, note: Note | None) -> Type:
    """Return a type with the content of its note; raises ParseError."""
    if note is None:
        return type_
    dims = type_.note.dims if type_.note is not None else ()
    content = TypeNote(note.text("denotation"), dims, note.message("type", TypeProto))
    return replace(type_, note=content if any(content) else None)


def read_bare_type(cursor: Cursor) -> Type:
    """Read a type without the note before it; raises ParseError."""
    type_, dims = _bare_type(cursor)
    return replace(type_, note=TypeNote(dims=dims)) if dims else type_


def _bare_type(cursor: Cursor) -> tuple[Type, tuple[str, ...]]:
    """Read a type, and the denotations of its dimensions where any has one."""
    word = cursor.tokens[cursor.at]
    if word in ELEMENT_WORDS or (word in _UNUSUAL_WORDS and _at_unusual_element(cursor)):
        element = _element(cursor)
        shape, dims = _shape(cursor)
        return TensorType(element, shape), dims
    if word not in TYPE_WORDS:
        raise unknown_type(cursor)
    if word == "sparse_tensor":
        cursor.at += 1
        cursor.expect("(")
        element = _element(cursor)
        shape, dims = _shape(cursor)
        cursor.expect(")")
        return SparseTensorType(element, shape), dims
    cursor.enter("types")
    cursor.at += 1
    cursor.expect("(")
    found = _opaque(cursor) if word == "opaque" else _compound(cursor, word)
    cursor.expect(")")
    cursor.leave()
    return found, ()


def _compound(cursor: Cursor, word: str) -> Type:
    if word == "seq":
        return SequenceType(_item(cursor))
    if word == "optional":
        return OptionalType(_item(cursor))
    key = _element(cursor)
    cursor.expect(",")
    return MapType(key, _item(cursor))


def _item(cursor: Cursor) -> Type | None:
    return read_type(cursor) if cursor.tokens[cursor.at] != "?" or at_type(cursor) else _skipped(cursor)


def _skipped(cursor: Cursor) -> None:
    cursor.at += 1


def _at_unusual_element(cursor: Cursor) -> bool:
    """Return whether `?7` is next, or the word that `onnx.printer` writes for no element type."""
    following = cursor.tokens[cursor.at + 1]
    if cursor.tokens[cursor.at] == "?":
        return following.isascii() and following.removeprefix("-").isdecimal()
    return following == "[" or following[:1] in LETTERS or following[:1] == '"'


def _element(cursor: Cursor) -> ElementType:
    element = ELEMENT_WORDS.get(cursor.tokens[cursor.at])
    if element is not None:
        cursor.at += 1
        return element
    if cursor.skip("undefined"):
        return UNDEFINED
    if not cursor.skip("?"):
        raise unknown_type(cursor, ELEMENT_WORDS)
    number = cursor.integer("the number of an element type")
    if not -(1 << 31) <= number < 1 << 31 or find_element(number) is not None:
        raise cursor.error(
            "`?` is followed by the number of an element type that the standard does not define",
            cursor.at - 1,
        )
    return unknown_element(number)


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


def _shape(cursor: Cursor) -> tuple[Shape | None, tuple[str, ...]]:
    """Read a shape, and the denotations of its dimensions where any has one."""
    if not cursor.skip("["):
        return (), ()
    if cursor.skip("]"):
        return None, ()
    dims: list[Dim] = []
    denotations: dict[int, str] = {}
    while True:
        note = read_note(cursor)
        if note is not None:
            denotations[len(dims)] = note.text("denotation")
            note.done()
        dims.append(_dim(cursor))
        if not cursor.skip(","):
            break
    cursor.expect("]", "dimensions are separated by commas")
    return tuple(dims), tuple(denotations.get(i, "") for i in range(len(dims))) if denotations else ()


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


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> Dim:
    return parse_dim(text)


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
    value = _parsed(text) if text else None
    if value is None or (isinstance(value, Expr) and value == symbol(text)):
        cursor.at = start
        raise cursor.expected("a dimension: a number, a name, an expression or ?", "quote any other text")
    return value
