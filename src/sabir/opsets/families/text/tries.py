"""Vocabularies of byte strings, in the format of RWKV's files, and the longest tokens of a text."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import EvaluationError, InferenceError, quote
from sabir.schema import Attribute

if TYPE_CHECKING:
    from collections.abc import Mapping

VOCABULARY = Attribute(
    "vocab",
    "string",
    "Lines of a number, a space, the token as a literal of Python (`'the'`, `b'\\xe6'`), a space, and the "
    "number of its bytes.",
    required=True,
)
_CACHED = 4  # vocabularies


class Vocabulary(NamedTuple):
    """The numbers of tokens, the tokens of numbers, and the lengths of the tokens with a first byte."""

    numbers: Mapping[bytes, int]
    tokens: Mapping[int, bytes]
    lengths: Mapping[int, tuple[int, ...]]  # descending

    def encoded(self, text: bytes) -> list[int]:
        r"""Return the longest token at each place; raises EvaluationError where there is none.

        >>> vocabulary_of("1 'a' 1\n2 'ab' 2\n3 b'\\xc3' 1").encoded(b"aba")
        [2, 1]
        """
        found: list[int] = []
        place = 0
        while place < len(text):
            length = next(
                (n for n in self.lengths.get(text[place], ()) if text[place : place + n] in self.numbers), 0
            )
            if not length:
                raise EvaluationError(f"`vocab` has no token for the byte {text[place : place + 1]!r}")
            found.append(self.numbers[text[place : place + length]])
            place += length
        return found


@functools.lru_cache(_CACHED)
def vocabulary_of(text: str) -> Vocabulary:
    """Return the vocabulary in an attribute; raises InferenceError for a line in another format.

    >>> vocabulary_of("7 ' w' 2").numbers
    {b' w': 7}
    """
    numbers: dict[bytes, int] = {}
    for line in text.split("\n"):
        if line.strip():
            token, number = _entry(line)
            numbers[token] = number
    lengths: dict[int, set[int]] = {}
    for token in numbers:
        lengths.setdefault(token[0], set()).add(len(token))
    return Vocabulary(
        numbers,
        {number: token for token, number in numbers.items()},
        {first: tuple(sorted(each, reverse=True)) for first, each in lengths.items()},
    )


def _entry(line: str) -> tuple[bytes, int]:
    number, _, rest = line.strip().partition(" ")
    literal, _, length = rest.rpartition(" ")
    try:
        token = ast.literal_eval(literal.strip())
        entry = int(number), int(length)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise InferenceError(f"`vocab` has the line {quote(line)}: {error}") from error
    token = token.encode() if isinstance(token, str) else token
    if not isinstance(token, bytes) or not token or len(token) != entry[1]:
        raise InferenceError(f"`vocab` has the line {quote(line)}, whose token has not {entry[1]} bytes")
    return token, entry[0]
