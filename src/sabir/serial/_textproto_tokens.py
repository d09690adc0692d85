"""The tokens of protobuf's text format."""

from __future__ import annotations

import codecs
import re
from typing import NoReturn

from sabir.base import ParseError, quote

_TOKEN = re.compile(
    r"""(?:[ \t\r\n\f\v]++|\#[^\n]*+)*+
    (?:(?P<word>[A-Za-z_][A-Za-z0-9_]*+)
      |(?P<number>(?:0[xX][0-9a-fA-F]++|(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?[fF]?)(?![\w.]))
      |(?P<string>"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+')
      |(?P<mark>[-{}<>\[\]:;,])
      |(?P<end>\Z))""",
    re.VERBOSE,
)
_BLANK = re.compile(r"(?:[ \t\r\n\f\v]++|#[^\n]*+)*+")
_OCTAL = rb"[0-3][0-7]{2}|[0-7]{1,2}(?![0-7])"
_PLAIN_ESCAPES = re.compile(rb"""(?:[^\\]++|\\(?:[abfnrtv\\'"]|%b|x[0-9a-fA-F]{2}))*+""" % _OCTAL, re.DOTALL)
_ESCAPES = re.compile(
    rb"""(?:[^\\]++|\\(?:[abfnrtv\\'"?]|%b|[xX][0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))*+"""
    % _OCTAL,
    re.DOTALL,
)
_ESCAPE = re.compile(
    rb"""\\(?:([abfnrtv\\'"?])|(%b)|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))""" % _OCTAL
)
_LETTERS = dict(zip(b"abfnrtv", b"\a\b\f\n\r\t\v", strict=True))


class TokenReader:
    """A text, and its next token; each method raises ParseError, which says where."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = self.end = 0
        self.kind = self.token = ""
        self.advance()

    def advance(self) -> None:
        """Read the next token."""
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            blank = _BLANK.match(self.text, self.end)
            self.at = blank.end() if blank else self.end
            found = self.text[self.at : self.at + 20]
            is_string = found[:1] in {'"', "'"}
            self.fail(
                "this string does not end on its line"
                if is_string
                else f"{quote(found)} does not belong to the format"
            )
        self.kind = match.lastgroup or ""
        self.at, self.end = match.span(self.kind)
        self.token = match[self.kind]

    def skip(self, mark: str) -> bool:
        """Read past the next token if it is this mark; return whether it was."""
        if self.kind != "mark" or self.token != mark:
            return False
        self.advance()
        return True

    def skip_separator(self) -> None:
        """Read past a comma or semicolon."""
        _ = self.skip(",") or self.skip(";")

    def expected(self, what: str) -> NoReturn:
        """Raise the error for a next token that is not `what`."""
        found = quote(self.token) if self.token else "the end of the text"
        self.fail(f"expected {what}, found {found}")

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise an error at the next token, or at an offset in the text."""
        where = self.at if at is None else at
        begin = self.text.rfind("\n", 0, where) + 1
        end = self.text.find("\n", where)
        source = self.text[begin : len(self.text) if end < 0 else end].rstrip("\r")
        line = self.text.count("\n", 0, where) + 1
        raise ParseError(message, line=line, column=where - begin + 1, source=source)

    def unescaped(self, data: bytes) -> bytes | bytearray:
        """Return the content of a string, with its escapes replaced."""
        if b"\\" not in data:
            return data
        if _PLAIN_ESCAPES.fullmatch(data):
            return codecs.decode(data, "unicode_escape").encode("latin-1")
        if not _ESCAPES.fullmatch(data):
            self.fail("the string has an unknown escape")
        content, end = bytearray(), 0
        for escape in _ESCAPE.finditer(data):
            content += data[end : escape.start()]
            try:
                content += _character(escape)
            except ValueError:
                self.fail("the string has an escape for a character that does not exist")
            end = escape.end()
        return content + data[end:]


def _character(match: re.Match[bytes]) -> bytes:
    letter, octal, byte, short, point = match.groups()
    if letter:
        return bytes([_LETTERS.get(letter[0], letter[0])])
    if octal:
        return bytes([int(octal, 8)])
    return bytes([int(byte, 16)]) if byte else chr(int(short or point, 16)).encode()
