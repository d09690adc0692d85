"""Texts of a model, cut to a length that a page can hold."""

from __future__ import annotations

from sabir.base import legible

NAME, TEXT, DOCUMENT = 400, 300, 3000
"""The most characters of a name, of one value of an attribute or of metadata, and of a documentation."""


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters, in which what cannot be printed is escaped.

    >>> shortened('a' * 20, 8)
    'aaaaaaa…'
    """
    shown = legible(text[: most + 1], lines=True)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
