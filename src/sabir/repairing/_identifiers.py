"""New names: C identifiers that are similar to the old names and not in use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking import KEYWORDS
from sabir.ir import FreshNames

if TYPE_CHECKING:
    from collections.abc import Iterable

_INVALID = re.compile(r"[^A-Za-z0-9_]")


class Identifiers:
    """Generates C identifiers that differ from one another and from the names in use."""

    def __init__(self, names_in_use: Iterable[str]) -> None:
        self._names = FreshNames(names_in_use)

    def fresh(self, name: str) -> str:
        """Return `name` with every invalid character replaced, and with a number if that name is in use."""
        return self._names.fresh(plain_name(name))


def plain_name(name: str) -> str:
    """Return the C identifier most similar to a name; an identifier is returned unchanged."""
    plain = _INVALID.sub("_", name)
    return f"_{plain}" if plain[:1].isdigit() or plain in KEYWORDS else plain


def renamed(what: str, old: str, new: str) -> str:
    """Return the message of a repair that changed a name, or added one where `old` is empty."""
    return f"renamed {what} {quote(old)} to {quote(new)}" if old else f"named {what} {quote(new)}"
