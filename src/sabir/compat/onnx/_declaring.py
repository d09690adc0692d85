"""Values of a graph that are declared by their names alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def declare(values: Any, names: Iterable[str]) -> None:
    """Add a ValueInfoProto for each name, once, to inputs or outputs; empty names are no values."""
    for name in dict.fromkeys(names):
        if name:
            values.add(name=name)
