"""Texts of a model in a picture: one line of printable characters, and how wide it is."""

from __future__ import annotations

import unicodedata

_MANY = 4  # times the width: characters that are looked at, as few of them may take no column
_WIDE = ("W", "F")


def one_line(text: object, width: int, *, end: bool = False) -> str:
    r"""Return a text as printable characters, cut to so many columns; with `end` its end remains.

    Other characters are written as escapes, so no text can break a line or turn its direction.

    >>> one_line('/encoder/layer.0/Conv', 10, end=True), one_line('a\nb', 10)
    ('…er.0/Conv', 'a\\nb')
    """
    shown, most = str(text), _MANY * width
    is_long = len(shown) > most
    kept = (shown[-most:] if end else shown[:most]) if is_long else shown
    escaped = kept if kept.isprintable() else "".join(map(_printable, kept))
    if not is_long and columns(escaped) <= width:
        return escaped
    return f"…{_fitting(escaped[::-1], width - 1)[::-1]}" if end else f"{_fitting(escaped, width - 1)}…"


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    >>> columns('weight'), columns('重み')
    (6, 4)
    """
    return len(text) if text.isascii() else sum(map(_column, text))


def _column(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def _printable(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


def _fitting(text: str, width: int) -> str:
    """Return the beginning of a text that takes at most so many columns."""
    taken = 0
    for place, character in enumerate(text):
        taken += _column(character)
        if taken > width:
            return text[:place]
    return text


def seconds_text(seconds: float) -> str:
    """Return a time as a person reads it.

    >>> seconds_text(0.00321), seconds_text(4e-6)
    ('3.21 ms', '4 us')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


__all__ = ["columns", "one_line", "seconds_text"]
