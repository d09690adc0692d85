"""The words and spellings that reading and writing share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sabir.elements import ELEMENTS
from sabir.ir import ATTRIBUTE_TYPES

if TYPE_CHECKING:
    from sabir.ir import AttributeType

LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")

ELEMENT_WORDS = {kind.name: kind for kind in ELEMENTS}
TYPE_WORDS = frozenset(ELEMENT_WORDS) | {"seq", "map", "optional", "sparse_tensor", "opaque"}
# what numpy and the standard's prose call some of them
TYPE_SYNONYMS = {
    "float32": "float",
    "float64": "double",
    "half": "float16",
    "str": "string",
    "sequence": "seq",
}

# the syntax says `type_proto` for what the model objects call `type`
ATTRIBUTE_WORDS: dict[AttributeType, str] = {
    kind: kind.replace("type", "type_proto") for kind in ATTRIBUTE_TYPES
}
ATTRIBUTE_TYPE_OF: dict[str, AttributeType] = {word: kind for kind, word in ATTRIBUTE_WORDS.items()}
LIST_OF: dict[AttributeType, AttributeType] = {
    kind: plural for kind in ATTRIBUTE_TYPES for plural in ATTRIBUTE_TYPES if plural == f"{kind}s"
}
ITEM_OF: dict[AttributeType, AttributeType] = {plural: kind for kind, plural in LIST_OF.items()}

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
INDENT = "   "
ELISION = "..."  # and then a count: what a listing writes in the place of many elements
_UNESCAPED = re.compile(r'["\\]')


def is_float_word(word: str) -> bool:
    """Return whether a word is one of the spellings of infinity or not-a-number."""
    return word.lower().removeprefix("-") in {"inf", "infinity", "nan"}


def quoted(text: str) -> str:
    """Return `text` as a string literal; only quotes and backslashes are escaped."""
    return f'"{_UNESCAPED.sub(_escape, text)}"'


def spelled(name: str) -> str:
    """Return a name as the syntax takes it everywhere: bare where possible, else quoted."""
    return name if IDENTIFIER.fullmatch(name) and name not in TYPE_WORDS else quoted(name)


def elision(count: int, noun: str) -> str:
    """Return what a listing writes between brackets in the place of many elements; `parse` refuses it."""
    return f"{ELISION} {count:,} {noun}"


def cut_text(beginning: str, characters: int) -> str:
    """Return what a listing writes for a long text; `parse` refuses it."""
    return f"{quoted(beginning)} {elision(characters, 'characters')}"


def _escape(match: re.Match[str]) -> str:
    return f"\\{match[0]}"
