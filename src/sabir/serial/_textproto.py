"""Protobuf's text format.

Reading is our own: protobuf's reader calls itself for each message in another, and takes three hundred bytes
of memory for each escape of a string. This one goes over the text once, and every number must fit its field.
"""

from __future__ import annotations

import codecs
import re
from typing import Any, NamedTuple, NoReturn

from sabir.base import ParseError, quote, suggest
from sabir.serial._fields import (
    BYTES,
    DEEPEST,
    DOUBLE,
    ENUM,
    FLOAT,
    LONGEST_NUMBER,
    MESSAGE,
    RANGES,
    Field,
    fields_of,
)

_TOKEN = re.compile(
    r"""(?:[ \t\r\n\f\v]++|\#[^\n]*+)*+
    (?:(?P<word>[A-Za-z_][A-Za-z0-9_]*+)
      |(?P<number>(?:0[xX][0-9a-fA-F]++|(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?[fF]?)(?![\w.]))
      |(?P<string>"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+')
      |(?P<mark>[-{}<>\[\]:;,])
      |(?P<end>\Z))""",
    re.VERBOSE,
)
_PLAIN_INTEGERS = re.compile(r"((?:-?(?:0|[1-9][0-9]{0,19}+),\s*+)*+-?(?:0|[1-9][0-9]{0,19}+))\]", re.ASCII)
_PLAIN_FLOATS = re.compile(
    r"((?:-?[0-9]++(?:\.[0-9]++)?(?:e[-+]?[0-9]++)?,\s*+)*+-?[0-9]++(?:\.[0-9]++)?(?:e[-+]?[0-9]++)?)\]",
    re.ASCII,
)
_CLOSING = {"{": "}", "<": ">"}


def read_textproto(text: str, message: Any) -> None:
    """Fill an empty message from a text; raises ParseError, which says where."""
    _Reader(text).read(message)


def write_textproto(message: Any) -> str:
    """Return a message as text; unknown fields are left out."""
    from google.protobuf import text_format  # ruff: ignore[import-outside-top-level]  5 ms that few need

    return text_format.MessageToString(message, as_utf8=True, use_short_repeated_primitives=True)


class _Frame(NamedTuple):
    """A message being read, up to its closing mark; `listed` is the field of a list that it stands in."""

    message: Any
    fields: dict[str, Field]
    closing: str
    listed: Field | None = None


class _Reader:
    """One pass over a text, a token ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._end = 0
        self._kind = self._token = ""
        self._advance()

    def read(self, message: Any) -> None:
        stack = [_Frame(message, fields_of(message), "")]
        while self._kind != "end":
            top = stack[-1]
            if self._token == top.closing:
                self._close(stack)
                continue
            field = self._field(top)
            if field.kind == MESSAGE:
                self._messages(stack, field)
            else:
                self._scalars(top.message, field)
                self._skip_separator()
        if len(stack) > 1:
            self._expected(f"'{stack[-1].closing}'")

    # fields

    def _field(self, top: _Frame) -> Field:
        if self._kind != "word":
            self._expected(f"a field or {top.closing!r}" if top.closing else "a field")
        field = top.fields.get(self._token)
        name = top.message.DESCRIPTOR.name
        if field is None:
            self._fail(f"{name} has no field {quote(self._token)}{suggest(self._token[:100], top.fields)}")
        if not field.repeated:
            if field.oneof and top.message.WhichOneof(field.oneof):
                self._fail(f"{name} has {field.name!r} beside {top.message.WhichOneof(field.oneof)!r}")
            if top.message.HasField(field.name):
                self._fail(f"{name} has {field.name!r} twice")
        self._advance()
        return field

    def _messages(self, stack: list[_Frame], field: Field) -> None:
        """Open the message of a field, or the first of its list."""
        self._skip(":")
        listed = field.repeated and self._skip("[")
        if listed and self._skip("]"):
            self._skip_separator()
        else:
            self._open(stack, field, listed=listed)

    def _open(self, stack: list[_Frame], field: Field, *, listed: bool) -> None:
        closing = _CLOSING.get(self._token)
        if closing is None:
            self._expected("'{'")
        if len(stack) > DEEPEST:
            self._fail(f"messages are nested deeper than {DEEPEST}")
        held = getattr(stack[-1].message, field.name)
        if field.repeated:
            held = held.add()
        else:
            held.SetInParent()
        stack.append(_Frame(held, fields_of(held), closing, field if listed else None))
        self._advance()

    def _close(self, stack: list[_Frame]) -> None:
        """End a message, and open the next one of its list."""
        listed = stack.pop().listed
        self._advance()
        if listed is None or self._closes_list():
            self._skip_separator()
        else:
            self._open(stack, listed, listed=True)

    def _closes_list(self) -> bool:
        """Whether a list of messages ends here; else its next one follows."""
        if self._skip("]"):
            return True
        if not self._skip(","):
            self._expected("',' or ']'")
        return False

    def _scalars(self, message: Any, field: Field) -> None:
        if not self._skip(":"):
            self._expected("':'")
        if not field.repeated:
            setattr(message, field.name, self._scalar(field))
        elif self._token == "[" and (numbers := self._plain_numbers(field)) is not None:  # ruff: ignore[hardcoded-password-string]  a bracket
            getattr(message, field.name).extend(numbers)
        elif not self._skip("["):
            getattr(message, field.name).append(self._scalar(field))
        elif not self._skip("]"):
            values = [self._scalar(field)]
            while not self._closes_list():
                values.append(self._scalar(field))
            getattr(message, field.name).extend(values)

    def _plain_numbers(self, field: Field) -> list[Any] | None:
        """Return a list of numbers that are as plain as most, the quick way; None where one is not."""
        is_whole = field.kind in RANGES
        if not is_whole and field.kind not in {FLOAT, DOUBLE}:
            return None
        listed = (_PLAIN_INTEGERS if is_whole else _PLAIN_FLOATS).match(self._text, self._end)
        if listed is None:
            return None
        words = listed[1].split(",")
        if is_whole:
            numbers: list[Any] = list(map(int, words))
            low, high = RANGES[field.kind]
            fits = low <= min(numbers) and max(numbers) <= high
        else:
            numbers = list(map(float, words))
            fits = field.holds(min(numbers)) and field.holds(max(numbers))
        if not fits:
            return None
        self._end = listed.end()
        self._advance()
        return numbers

    # values

    def _scalar(self, field: Field) -> Any:
        if field.kind in RANGES:
            return self._integer(field, *RANGES[field.kind])
        if field.kind in {FLOAT, DOUBLE}:
            return self._float(field)
        return self._enum(field) if field.kind == ENUM else self._string(field)

    def _integer(self, field: Field, low: int, high: int) -> int:
        start = self._at
        sign = -1 if self._skip("-") else 1
        token = self._token
        if self._kind != "number" or not token.isalnum():
            self._expected(f"an integer for {field.name!r}")
        number = high + 1
        if len(token) <= LONGEST_NUMBER:
            number = sign * self._whole(token)
        if not low <= number <= high:
            self._fail(
                f"{field.name!r} takes integers from {low} to {high}, and this is {quote(token)}", start
            )
        self._advance()
        return number

    def _whole(self, token: str) -> int:
        try:
            if token[:2] in {"0x", "0X"}:
                return int(token, 16)
            return int(token, 8) if token[0] == "0" else int(token)
        except ValueError:
            self._expected("an integer")

    def _float(self, field: Field) -> float:
        start = self._at
        sign = -1.0 if self._skip("-") else 1.0
        token = self._token.lower()
        if self._kind == "word" and token in {"inf", "infinity", "nan"}:
            number = float(token)
        elif self._kind == "number" and token[:2] != "0x":
            number = float(token.rstrip("f"))
            if not field.holds(number):
                width = 32 if field.kind == FLOAT else 64
                self._fail(f"{field.name!r} takes {width}-bit floats, and {quote(token)} is too large", start)
        else:
            self._expected(f"a number for {field.name!r}")
        self._advance()
        return sign * number

    def _string(self, field: Field) -> str | bytes:
        start, data = self._at, bytearray()
        if self._kind != "string":
            self._expected(f"a quoted string for {field.name!r}")
        while self._kind == "string":
            data += self._unescaped(self._token[1:-1].encode())
            self._advance()
        if field.kind == BYTES:
            return bytes(data)
        try:
            return data.decode()
        except UnicodeDecodeError:
            self._fail(f"{field.name!r} must be UTF-8", start)

    def _unescaped(self, data: bytes) -> bytes | bytearray:
        if b"\\" not in data:
            return data
        if _PLAIN_ESCAPES.fullmatch(data):
            return codecs.decode(data, "unicode_escape").encode("latin-1")
        if not _ESCAPES.fullmatch(data):
            self._fail("the string has an escape that does not exist")
        made, end = bytearray(), 0
        for escape in _ESCAPE.finditer(data):
            made += data[end : escape.start()]
            try:
                made += _character(escape)
            except ValueError:
                self._fail("the string has an escape for a character that does not exist")
            end = escape.end()
        return made + data[end:]

    def _enum(self, field: Field) -> int:
        token = self._token
        if self._kind == "word" and token in field.values:
            number = field.values[token]
        elif self._kind == "number" and token.isdigit() and len(token) < LONGEST_NUMBER:
            number = self._whole(token)
            if number not in field.values.values():
                self._fail(f"{field.name!r} has no value {quote(token)}")
        else:
            self._fail(f"{field.name!r} has no value {quote(token)}{suggest(token[:100], field.values)}")
        self._advance()
        return number

    # tokens

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._end)
        if match is None:
            blank = _BLANK.match(self._text, self._end)
            self._at = blank.end() if blank else self._end
            found = self._text[self._at : self._at + 20]
            ended = found[:1] in {'"', "'"}
            self._fail(
                "this string is not ended in its line"
                if ended
                else f"{quote(found)} is no part of the format"
            )
        self._kind = match.lastgroup or ""
        self._at, self._end = match.span(self._kind)
        self._token = match[self._kind]

    def _skip(self, mark: str) -> bool:
        if self._kind != "mark" or self._token != mark:
            return False
        self._advance()
        return True

    def _skip_separator(self) -> None:
        _ = self._skip(",") or self._skip(";")

    def _expected(self, what: str) -> NoReturn:
        found = quote(self._token) if self._token else "the end of the text"
        self._fail(f"expected {what}, found {found}")

    def _fail(self, message: str, at: int | None = None) -> NoReturn:
        where = self._at if at is None else at
        begin = self._text.rfind("\n", 0, where) + 1
        end = self._text.find("\n", where)
        source = self._text[begin : len(self._text) if end < 0 else end].rstrip("\r")
        line = self._text.count("\n", 0, where) + 1
        raise ParseError(message, line=line, column=where - begin + 1, source=source)


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


def _character(match: re.Match[bytes]) -> bytes:
    letter, octal, byte, short, point = match.groups()
    if letter:
        return bytes([_LETTERS.get(letter[0], letter[0])])
    if octal:
        return bytes([int(octal, 8)])
    return bytes([int(byte, 16)]) if byte else chr(int(short or point, 16)).encode()
