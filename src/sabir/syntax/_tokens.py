"""Text to tokens, and a cursor over them.

One regular expression splits the whole text at once. Only an error needs the position of a token, which is
found by splitting the text again.
"""

from __future__ import annotations

import functools
import re
from itertools import islice
from typing import TYPE_CHECKING

from sabir.base import ParseError, quote, suggest
from sabir.syntax._words import ELISION, LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.syntax._external import Opener

MAX_DEPTH = 64

# Every repetition is possessive and every text matches, so that no input takes more than linear time. Of `#:`
# only these two characters are skipped, as a note follows them, which other readers take for a comment.
_SKIPPED = r"(?:[ \t\n\v\f\r]++|\#:|\#[^\n]*+)*+"
_DIGITS = r"-?[0-9]++(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?"
_NUMBER = rf"(?:{_DIGITS}|-?(?i:nan|inf(?:inity)?+))"
_SMALL = rf"""-?[A-Za-z_][A-Za-z0-9_]*+
    |=>|//
    |{_DIGITS}
    |"(?:[^"\\]++|\\.?)*+"?
    |.
    |\Z"""
_PART = rf"{_SKIPPED}({_SMALL})"
# all numbers of a tensor, in braces, are one token
_TOKEN = rf"{_SKIPPED}(\{{\s*+{_NUMBER}\s*+(?:,\s*+{_NUMBER}\s*+)*+\}}|{_SMALL})"
_OUTSIDE = re.compile(r'"(?:[^"\\]++|\\.?)*+"?|\#[^\n]*+|([^"#]++)', re.DOTALL)
_LONG = 1_000_000
_RUN = 10_000
_PLAIN = LETTERS | frozenset("0123456789 \t\n\r\v\f#")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@functools.cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compile one of the two patterns above when it is first needed, as that takes a millisecond."""
    return re.compile(text, re.ASCII | re.DOTALL | re.VERBOSE)


class Cursor:
    """A position in a text; `tokens` ends with an empty one, and `at` is the index of the next."""

    __slots__ = ("_divided", "at", "depth", "opener", "text", "tokens")

    def __init__(self, text: str, opener: Opener | None = None) -> None:
        """Split a text into tokens; raises ParseError for a string without an end.

        `opener` opens data in other files.
        """
        self.text, self.opener = text, opener
        self._divided: int | None = None
        self.tokens: list[str] = [""]
        self.at = self.depth = 0
        run = _find_run(text)
        if run is not None:
            raise self._error(f"{quote(text[run])} is here {_RUN:,} times in a row", run)
        self.tokens = _pattern(_TOKEN).findall(text)
        self.tokens.append("")
        last = len(self.tokens) - 1
        while last > 0 and not self.tokens[last]:
            last -= 1
        if self.tokens[last].startswith('"') and not _STRING.fullmatch(self.tokens[last]):
            raise self.error("this string never ends; close it, or an earlier one, with a quote", last)

    # errors

    def error(self, message: str, at: int | None = None) -> ParseError:
        """Return the error for a token, by default the next one."""
        return self._error(message, self._offset(self.at if at is None else at))

    def _error(self, message: str, start: int) -> ParseError:
        begin = self.text.rfind("\n", 0, start) + 1
        end = self.text.find("\n", start)
        source = self.text[begin : len(self.text) if end < 0 else end].rstrip("\r")
        line = self.text.count("\n", 0, start) + 1
        return ParseError(message, line=line, column=start - begin + 1, source=source)

    def expected(self, what: str, hint: str = "") -> ParseError:
        """Return the error for a next token that is not `what`."""
        if self.at_elision():
            return self.elided()
        found = self.tokens[self.at]
        shown = quote(found) if found else "the end of the text"
        return self.error(f"expected {what}, found {shown}{f'; {hint}' if hint else ''}")

    def at_elision(self, at: int | None = None) -> bool:
        """Return whether a listing left something out at a token, by default the next one."""
        start = self.at if at is None else at
        return "".join(self.tokens[start : start + len(ELISION)]).startswith(ELISION)

    def elided(self) -> ParseError:
        """Return the error for what a listing left out."""
        return self.error(
            "a part of the model is elided here, as in a listing; write all of it with `sabir.text(model)` "
            "or `sabir text --all`"
        )

    def unknown(self, what: str, known: Iterable[str]) -> ParseError:
        """Return the error for a next word that is not one of `known`, with the most similar one or all."""
        words, found = list(known), self.tokens[self.at]
        near = suggest(found, words).removeprefix("; ")
        return self.expected(what, near or f"one of {', '.join(words)}")

    def _offset(self, at: int) -> int:
        if self._divided is None or at <= self._divided:
            return self._nth(_TOKEN, at, 0)
        return self._nth(_PART, at - self._divided, self._nth(_TOKEN, self._divided, 0))

    def _nth(self, pattern: str, count: int, start: int) -> int:
        match = next(islice(_pattern(pattern).finditer(self.text, start), count, None), None)
        return len(self.text) if match is None else match.start(1)

    def at_numbers(self) -> bool:
        """Return whether the next token is numbers in braces."""
        token = self.tokens[self.at]
        return token[:1] == "{" and len(token) > 1

    def divide(self) -> None:
        """Split the next token, numbers in braces, so that an error can point at one of them."""
        self._divided = self.at
        self.tokens[self.at : self.at + 1] = _pattern(_PART).findall(self.tokens[self.at])[:-1]

    # reading

    def skip(self, token: str) -> bool:
        """Read past the next token if it is this one; return whether it was."""
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str, hint: str = "") -> None:
        """Read past this token; raises ParseError for another one."""
        if self.tokens[self.at] != token:
            raise self.expected(f"{token!r}", hint)
        self.at += 1

    def expect_end(self, what: str) -> None:
        """Raise ParseError unless this is the end of the text."""
        if self.tokens[self.at]:
            raise self.expected(f"nothing after the {what}")

    def identifier(self, what: str) -> str:
        """Read a bare name."""
        word = self.tokens[self.at]
        if word[:1] not in LETTERS:
            raise self.expected(what)
        self.at += 1
        return word

    def name(self, what: str) -> str:
        """Read a name, bare or quoted."""
        return self.string(what) if self.tokens[self.at][:1] == '"' else self.identifier(what)

    def string(self, what: str) -> str:
        """Read a string literal; raises ParseError for one that has no UTF-8 form."""
        content = self.literal(what)
        if not content.isascii() and not _is_encodable(content):
            raise self.error(f"{what} must be valid Unicode, and has a lone surrogate", self.at - 1)
        return content

    def literal(self, what: str) -> str:
        """Read a string literal of any code points."""
        token = self.tokens[self.at]
        if token[:1] != '"':
            raise self.expected(what, "strings are in double quotes")
        self.at += 1
        content = token[1:-1]
        return _ESCAPED.sub(r"\1", content) if "\\" in content else content

    def integer(self, what: str) -> int:
        """Read a 64-bit integer."""
        word = self.tokens[self.at]
        try:
            value = int(word) if word.isascii() else None
        except ValueError:
            value = None
        if value is None:
            raise self.expected(what)
        if not -(2**63) <= value < 2**63:
            raise self.error(f"{quote(word)} does not fit in 64 bits")
        self.at += 1
        return value

    def enter(self, what: str) -> None:
        """Count one more level of nesting; raises ParseError above the limit."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"{what} are nested more than {MAX_DEPTH} deep")

    def leave(self) -> None:
        """Undo one `enter`."""
        self.depth -= 1


def _find_run(text: str) -> int | None:
    """Return where a long text repeats one character: no model does, and splitting it would take long."""
    if len(text) < _LONG:
        return None
    for sign in {text[len(text) * k // 16] for k in range(16)} - _PLAIN:
        run = sign * _RUN
        if run not in text:
            continue
        if sign == '"':  # two in a row end a string
            return text.index(run)
        for match in _OUTSIDE.finditer(text):
            if run in (match[1] or ""):
                return match.start(1) + match[1].index(run)
    return None


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
