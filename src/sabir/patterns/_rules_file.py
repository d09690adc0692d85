"""Files of rewrite rules: TOML, in which patterns, replacements and conditions are texts.

[[rule]]
name = "swish"
pattern = "y = Mul (x, Sigmoid (x))"
replacement = "y = Swish (x)"
where = ["rank(x) >= 2"]
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sabir.base import FileError, ParseError, SchemaError, quote, suggest
from sabir.patterns._rule import RewriteRule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

_MOST_BYTES = 1 << 24  # of a file
_MOST_DEPTH = 100  # of brackets inside one another, which the reader of TOML visits by recursion


def load_rules(path: str | PathLike[str]) -> list[RewriteRule]:
    """Return the rules of a TOML file; raises as `parse_rules`, and FileError where it cannot be read.

    >>> load_rules('missing.toml')
    Traceback (most recent call last):
        ...
    sabir.FileError: 'missing.toml' cannot be read: No such file or directory
    """
    shown = quote(str(path))
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise FileError(f"{shown} cannot be read: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise FileError(f"{shown} has more than {_MOST_BYTES >> 20} MiB, which no file of rules has")
    try:
        return parse_rules(data.decode())
    except UnicodeDecodeError as error:
        raise ParseError(f"{shown}: byte {error.start} is not UTF-8") from error
    except (ParseError, SchemaError) as error:
        raise type(error)(f"{shown}: {error}") from error


def parse_rules(text: str) -> list[RewriteRule]:
    """Return the rules of a text in TOML.

    Each `[[rule]]` has `name`, `pattern`, `replacement` and, on request, `where`, `says`, `exact`, `shared`,
    `examples`, `near_misses`, `since`, `until` and `imports`: the fields of `RewriteRule`. A list may be one
    text alone.

    Raises ParseError for a text that is no TOML, or a pattern that has errors; SchemaError for unknown or
    missing fields, values of other types, and rules without a meaning.

    >>> parse_rules('''[[rule]]
    ... name = "swish"
    ... pattern = "y = Mul (x, Sigmoid (x))"
    ... replacement = "y = Swish (x)"
    ... ''')[0].name
    'swish'
    """
    try:
        document = tomllib.loads(text) if _depth(text) <= _MOST_DEPTH else None
    except tomllib.TOMLDecodeError as error:
        raise ParseError(f"this is no TOML: {error}") from error
    if document is None:
        raise ParseError(f"this is no file of rules: brackets are nested more than {_MOST_DEPTH} deep")
    unknown = next((key for key in document if key != "rule"), None)
    if unknown is not None:
        raise SchemaError(f"a file of rules has `[[rule]]` alone, and this one {quote(unknown)}")
    entries = cast("object", document.get("rule", []))
    if not isinstance(entries, list):
        raise SchemaError("a file of rules has `[[rule]]`, in two pairs of brackets")
    rules = [_rule(entry, place) for place, entry in enumerate(cast("list[object]", entries), 1)]
    names = [rule.name for rule in rules]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SchemaError(f"two rules have the name {quote(twice)}")
    return rules


def _depth(text: str) -> int:
    """Return a bound of how deep brackets are nested."""
    deepest = depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth = max(0, depth - 1)
    return deepest


def _rule(entry: object, place: int) -> RewriteRule:
    if not isinstance(entry, dict):
        raise SchemaError("a file of rules has `[[rule]]`, in two pairs of brackets")
    given = cast("dict[str, object]", entry)
    label = f"rule {place}"
    if isinstance(given.get("name"), str):
        label += f", {quote(str(given['name']))}"
    for key in given:
        if key not in _FIELDS:
            raise SchemaError(f"{label} has a field {quote(key)}, which no rule has{suggest(key, _FIELDS)}")
    missing = next((key for key in _REQUIRED if key not in given), None)
    if missing is not None:
        raise SchemaError(f"{label} has no {quote(missing)}")
    fields: dict[str, Any] = {key: _FIELDS[key](value, f"{label}: {key}") for key, value in given.items()}
    try:
        return RewriteRule(**fields)
    except ParseError as error:
        raise ParseError(f"{label}: {error}") from error
    except SchemaError as error:
        raise SchemaError(f"{label}: {error}") from error


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise SchemaError(f"{what} must be a text, and is {quote(str(value))}")
    return value


def _texts(value: object, what: str) -> list[str]:
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    return [_text(item, what) for item in items]


def _truth(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise SchemaError(f"{what} must be true or false, and is {quote(str(value))}")
    return value


def _opset(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SchemaError(f"{what} must be the number of an operator set, and is {quote(str(value))}")
    return value


def _imports(value: object, what: str) -> dict[str, int]:
    if not isinstance(value, dict):
        raise SchemaError(f"{what} must be a table of domains and operator sets")
    return {domain: _opset(n, f"{what}.{domain}") for domain, n in cast("dict[str, object]", value).items()}


_FIELDS: Mapping[str, Callable[[object, str], object]] = {
    "name": _text, "pattern": _texts, "replacement": _text, "where": _texts, "says": _text, "exact": _truth,
    "shared": _truth, "examples": _texts, "near_misses": _texts, "since": _opset, "until": _opset,
    "imports": _imports,
}  # fmt: skip
_REQUIRED = ("name", "pattern", "replacement")
