"""Reading protobuf's JSON mapping.

Protobuf's own reader refuses the largest float that its writer writes, and reports a duplicate key without
its name.
"""

from __future__ import annotations

import base64
import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import numpy as np

from sabir.base import ParseError, quote, suggest
from sabir.serial._fields import (
    BYTES,
    DOUBLE,
    ENUM,
    FLOAT,
    INT32,
    INT64,
    MAX_DEPTH,
    MAX_NUMBER,
    MESSAGE,
    RANGES,
    STRING,
    UINT64,
    Field,
    fields_by_key,
    fields_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_MAX_BRACKETS = 2 * MAX_DEPTH + 1  # a list around each message
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_PIECE = 1 << 20
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1


def read_json(data: bytes, message: Any) -> None:
    """Fill an empty message from JSON in UTF-8; raises ParseError, which says where."""
    if _depth(data) > _MAX_BRACKETS:
        raise ParseError(f"brackets are nested deeper than {_MAX_BRACKETS}")
    open_parts = [iter([_Part(message, _content(data.decode()), "")])]
    while open_parts:
        part = next(open_parts[-1], None)
        if part is None:
            open_parts.pop()
            continue
        if not isinstance(part.content, dict):
            _refuse(part.place or "the model", "an object", part.content)
        if len(open_parts) > MAX_DEPTH:
            raise ParseError(f"{part.place[:100]}…: messages are nested deeper than {MAX_DEPTH}")
        open_parts.append(_fill(part))


class _Part(NamedTuple):
    """A message to fill, its JSON content, and its path."""

    message: Any
    content: Any
    place: str


def _fill(part: _Part) -> Iterator[_Part]:
    """Set the fields of a message, and yield the messages in it, which are still to be filled."""
    message, content, place = part
    known = fields_by_key(message.__class__)
    for key, value in content.items():
        field = known.get(key)
        if field is None:
            near = suggest(key[:100], fields_of(message))
            name = message.DESCRIPTOR.name
            raise ParseError(f"{place or 'the model'}: {name} has no field {quote(key)}{near}")
        if value is None:
            continue
        at = f"{place}.{field.name}" if place else field.name
        _require_new(message, field, at)
        if field.kind == MESSAGE:
            yield from _inner(message, field, value, at)
        elif field.repeated:
            getattr(message, field.name).extend([_scalar(field, v, at) for v in _list(value, at)])
        else:
            setattr(message, field.name, _scalar(field, value, at))


def _inner(message: Any, field: Field, value: Any, at: str) -> Iterator[_Part]:
    inner = getattr(message, field.name)
    if field.repeated:
        for place, item in enumerate(_list(value, at)):
            yield _Part(inner.add(), item, f"{at}[{place}]")
    else:
        inner.SetInParent()
        yield _Part(inner, value, at)


def _list(value: Any, at: str) -> list[Any]:
    if not isinstance(value, list):
        _refuse(at, "a list", value)
    return cast("list[Any]", value)


def _require_new(message: Any, field: Field, at: str) -> None:
    """Raise ParseError where a field, or another one of its oneof, is already set."""
    if len(getattr(message, field.name)) if field.repeated else message.HasField(field.name):
        raise ParseError(f"{at} is there twice")
    if field.oneof and message.WhichOneof(field.oneof):
        raise ParseError(f"{at} and {message.WhichOneof(field.oneof)!r} are both there; remove one of them")


def _scalar(field: Field, value: Any, at: str) -> Any:
    if isinstance(value, bool):
        _refuse(at, "a number or a string", value)
    return _READING[field.kind](field, value, at)


def _integer(field: Field, value: Any, at: str) -> int:
    low, high = RANGES[field.kind]
    is_text = isinstance(value, str) and len(value) <= MAX_NUMBER and _WHOLE.fullmatch(value)
    is_whole = isinstance(value, float) and value.is_integer()
    number: Any = int(value) if is_text or is_whole else value
    if not isinstance(number, int):
        _refuse(at, "an integer", value)
    if not low <= number <= high:
        raise ParseError(f"{at} must be an integer from {low} to {high}, and is {quote(str(value))}")
    return number


def _float(field: Field, value: Any, at: str) -> float:
    if isinstance(value, str):
        if value in _SPECIAL:
            return _SPECIAL[value]
        number = float(value) if _NUMBER.fullmatch(value) else None
    else:
        number = _as_float(value) if isinstance(value, (int, float)) else None
    if number is None:
        _refuse(at, "a number", value)
    if not field.accepts(number):
        width = 64 if field.kind == DOUBLE else 32
        raise ParseError(f"{at} must be a {width}-bit float, and {quote(str(value))} is out of range")
    return number


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _enum(field: Field, value: Any, at: str) -> int:
    if isinstance(value, str) and value in field.values:
        return field.values[value]
    if isinstance(value, int) and value in field.values.values():
        return value
    near = suggest(value[:100], field.values) if isinstance(value, str) else ""
    raise ParseError(f"{at} has no value {_shown(value)}{near}")


def _text(_: Field, value: Any, at: str) -> str:
    if not isinstance(value, str):
        _refuse(at, "a string", value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ParseError(f"{at} has half of a surrogate pair, which is no character") from None
    return value


def _bytes(_: Field, value: Any, at: str) -> bytes:
    if not isinstance(value, str):
        _refuse(at, "a string in base64", value)
    plain = value.translate(_PLAIN_ALPHABET) if "-" in value or "_" in value else value
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError as error:
        raise ParseError(f"{at} is not base64: {error}") from error


_PLAIN_ALPHABET = str.maketrans("-_", "+/")
_READING: dict[int, Callable[[Field, Any, str], Any]] = {
    INT32: _integer, INT64: _integer, UINT64: _integer, FLOAT: _float, DOUBLE: _float, ENUM: _enum,
    STRING: _text, BYTES: _bytes,
}  # fmt: skip


def _refuse(at: str, wanted: str, value: Any) -> NoReturn:
    raise ParseError(f"{at} must be {wanted}, and is {_shown(value)}")


def _shown(value: Any) -> str:
    """Return a value for a message, on one line and not too long."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return quote(value) if isinstance(value, str) else json.dumps(value)[:100]


# JSON itself


def _content(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_digits, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line = text[error.pos - error.colno + 1 :].partition("\n")[0]
        problem = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise ParseError(problem, line=error.lineno, column=error.colno, source=line) from error
    except RecursionError as error:
        raise ParseError("brackets are nested too deep for this Python") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ParseError(f"the key {quote(_first_duplicate(k for k, _ in pairs))} is twice in one object")
    return found


def _first_duplicate(keys: Iterable[str]) -> str:
    seen: set[str] = set()
    return next(k for k in keys if k in seen or seen.add(k))


def _digits(digits: str) -> int:
    if len(digits) > MAX_NUMBER:
        raise ParseError(f"the number {digits[:20]}... has {len(digits)} digits, more than any field takes")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ParseError(f'JSON has no number {name}; write it as the string "{name}"')


def _depth(data: bytes) -> int:
    """Return how deep brackets are nested, in time and memory in proportion to the text."""
    bare = _STRING.sub(b"", data)
    deepest = height = 0
    for start in range(0, len(bare), _PIECE):
        heights = np.cumsum(_STEPS[np.frombuffer(bare[start : start + _PIECE], np.uint8)], dtype=np.int64)
        deepest = max(deepest, height + int(heights.max()))
        height += int(heights[-1])
    return deepest
