"""Protobuf's text format.

Protobuf's own reader recurses into nested messages, and takes three hundred bytes of memory for each escape
in a string. This one needs neither, and refuses every number that does not fit its field.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from sabir.base import quote, suggest
from sabir.serial._fields import (
    BYTES,
    DOUBLE,
    ENUM,
    FLOAT,
    MAX_DEPTH,
    MAX_NUMBER,
    MESSAGE,
    RANGES,
    Field,
    fields_of,
)
from sabir.serial._textproto_tokens import TokenReader

_PLAIN_INTEGERS = re.compile(r"((?:-?(?:0|[1-9][0-9]{0,19}+),\s*+)*+-?(?:0|[1-9][0-9]{0,19}+))\]", re.ASCII)
_PLAIN_FLOATS = re.compile(
    r"((?:-?[0-9]++(?:\.[0-9]++)?(?:e[-+]?[0-9]++)?,\s*+)*+-?[0-9]++(?:\.[0-9]++)?(?:e[-+]?[0-9]++)?)\]",
    re.ASCII,
)
_CLOSING = {"{": "}", "<": ">"}


def read_textproto(text: str, message: Any) -> None:
    """Fill an empty message from a text; raises ParseError, which says where."""
    _TextprotoReader(text).read(message)


def write_textproto(message: Any) -> str:
    """Return a message as text; unknown fields are left out."""
    from google.protobuf import text_format  # ruff: ignore[import-outside-top-level]  5 ms that few need

    return text_format.MessageToString(message, as_utf8=True, use_short_repeated_primitives=True)


class _OpenMessage(NamedTuple):
    """A message that is being read, up to its closing mark; `listed` is the field whose list contains it."""

    message: Any
    fields: dict[str, Field]
    closing: str
    listed: Field | None = None


class _TextprotoReader(TokenReader):
    """Fills a message from a text in one pass."""

    def read(self, message: Any) -> None:
        stack = [_OpenMessage(message, fields_of(message), "")]
        while self.kind != "end":
            top = stack[-1]
            if self.token == top.closing:
                self._close(stack)
                continue
            field = self._field(top)
            if field.kind == MESSAGE:
                self._messages(stack, field)
            else:
                self._scalars(top.message, field)
                self.skip_separator()
        if len(stack) > 1:
            self.expected(f"'{stack[-1].closing}'")

    # fields

    def _field(self, top: _OpenMessage) -> Field:
        if self.kind != "word":
            self.expected(f"a field or {top.closing!r}" if top.closing else "a field")
        field = top.fields.get(self.token)
        name = top.message.DESCRIPTOR.name
        if field is None:
            self.fail(f"{name} has no field {quote(self.token)}{suggest(self.token[:100], top.fields)}")
        if not field.repeated:
            if field.oneof and top.message.WhichOneof(field.oneof):
                other = top.message.WhichOneof(field.oneof)
                self.fail(f"{name} has both {field.name!r} and {other!r}; remove one of them")
            if top.message.HasField(field.name):
                self.fail(f"{name} has {field.name!r} twice")
        self.advance()
        return field

    def _messages(self, stack: list[_OpenMessage], field: Field) -> None:
        """Open the message of a field, or the first of its list."""
        self.skip(":")
        listed = field.repeated and self.skip("[")
        if listed and self.skip("]"):
            self.skip_separator()
        else:
            self._open(stack, field, listed=listed)

    def _open(self, stack: list[_OpenMessage], field: Field, *, listed: bool) -> None:
        closing = _CLOSING.get(self.token)
        if closing is None:
            self.expected("'{'")
        if len(stack) > MAX_DEPTH:
            self.fail(f"messages are nested deeper than {MAX_DEPTH}")
        message = getattr(stack[-1].message, field.name)
        if field.repeated:
            message = message.add()
        else:
            message.SetInParent()
        stack.append(_OpenMessage(message, fields_of(message), closing, field if listed else None))
        self.advance()

    def _close(self, stack: list[_OpenMessage]) -> None:
        """End a message, and open the next one of its list."""
        listed = stack.pop().listed
        self.advance()
        if listed is None or self._closes_list():
            self.skip_separator()
        else:
            self._open(stack, listed, listed=True)

    def _closes_list(self) -> bool:
        """Return whether a list of messages ends here; else its next one follows."""
        if self.skip("]"):
            return True
        if not self.skip(","):
            self.expected("',' or ']'")
        return False

    def _scalars(self, message: Any, field: Field) -> None:
        if not self.skip(":"):
            self.expected("':'")
        if not field.repeated:
            setattr(message, field.name, self._scalar(field))
        elif self.token == "[" and (numbers := self._plain_numbers(field)) is not None:  # ruff: ignore[hardcoded-password-string]  a bracket
            getattr(message, field.name).extend(numbers)
        elif not self.skip("["):
            getattr(message, field.name).append(self._scalar(field))
        elif not self.skip("]"):
            values = [self._scalar(field)]
            while not self._closes_list():
                values.append(self._scalar(field))
            getattr(message, field.name).extend(values)

    def _plain_numbers(self, field: Field) -> list[Any] | None:
        """Return a list of numbers, quickly, if all are written as most are; None where one is not."""
        is_whole = field.kind in RANGES
        if not is_whole and field.kind not in {FLOAT, DOUBLE}:
            return None
        listed = (_PLAIN_INTEGERS if is_whole else _PLAIN_FLOATS).match(self.text, self.end)
        if listed is None:
            return None
        words = listed[1].split(",")
        if is_whole:
            numbers: list[Any] = list(map(int, words))
            low, high = RANGES[field.kind]
            fits = low <= min(numbers) and max(numbers) <= high
        else:
            numbers = list(map(float, words))
            fits = field.accepts(min(numbers)) and field.accepts(max(numbers))
        if not fits:
            return None
        self.end = listed.end()
        self.advance()
        return numbers

    # values

    def _scalar(self, field: Field) -> Any:
        if field.kind in RANGES:
            return self._integer(field, *RANGES[field.kind])
        if field.kind in {FLOAT, DOUBLE}:
            return self._float(field)
        return self._enum(field) if field.kind == ENUM else self._string(field)

    def _integer(self, field: Field, low: int, high: int) -> int:
        start = self.at
        sign = -1 if self.skip("-") else 1
        token = self.token
        if self.kind != "number" or not token.isalnum():
            self.expected(f"an integer for {field.name!r}")
        number = high + 1
        if len(token) <= MAX_NUMBER:
            number = sign * self._whole(token)
        if not low <= number <= high:
            self.fail(f"{field.name!r} must be an integer from {low} to {high}, and is {quote(token)}", start)
        self.advance()
        return number

    def _whole(self, token: str) -> int:
        try:
            if token[:2] in {"0x", "0X"}:
                return int(token, 16)
            return int(token, 8) if token[0] == "0" else int(token)
        except ValueError:
            self.expected("an integer")

    def _float(self, field: Field) -> float:
        start = self.at
        sign = -1.0 if self.skip("-") else 1.0
        token = self.token.lower()
        if self.kind == "word" and token in {"inf", "infinity", "nan"}:
            number = float(token)
        elif self.kind == "number" and token[:2] != "0x":
            number = float(token.rstrip("f"))
            if not field.accepts(number):
                width = 32 if field.kind == FLOAT else 64
                self.fail(f"{field.name!r} must be a {width}-bit float, and {quote(token)} is too big", start)
        else:
            self.expected(f"a number for {field.name!r}")
        self.advance()
        return sign * number

    def _string(self, field: Field) -> str | bytes:
        start, data = self.at, bytearray()
        if self.kind != "string":
            self.expected(f"a quoted string for {field.name!r}")
        while self.kind == "string":
            data += self.unescaped(self.token[1:-1].encode())
            self.advance()
        if field.kind == BYTES:
            return bytes(data)
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.fail(f"{field.name!r} must be UTF-8", start)

    def _enum(self, field: Field) -> int:
        token = self.token
        if self.kind == "word" and token in field.values:
            number = field.values[token]
        elif self.kind == "number" and token.isdigit() and len(token) < MAX_NUMBER:
            number = self._whole(token)
            if number not in field.values.values():
                self.fail(f"{field.name!r} has no value {quote(token)}")
        else:
            self.fail(f"{field.name!r} has no value {quote(token)}{suggest(token[:100], field.values)}")
        self.advance()
        return number
