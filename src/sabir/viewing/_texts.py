"""Texts of a model as a page has them: cut to a length, with what cannot be printed escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import legible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Model

NAME, TEXT, DOCUMENT = 400, 300, 3000
"""The most characters of a name, of one value of an attribute or of metadata, and of a documentation."""
MOST_ENTRIES = 40
"""The most attributes, or entries of metadata, of one node or model."""


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters, in which what cannot be printed is escaped.

    >>> shortened('a' * 20, 8)
    'aaaaaaa…'
    """
    shown = legible(text[: most + 1], lines=True)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def entries(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return names with their texts, as many as a page has; those without a text are left out."""
    return [[shortened(name, NAME), shortened(text, TEXT)] for name, text in pairs if text][:MOST_ENTRIES]


def header_of(model: Model, name: str) -> dict[str, Any]:
    """Return what a page says about the whole of a model."""
    facts = [
        ("producer", f"{model.producer_name} {model.producer_version}".strip()),
        ("IR version", str(model.ir_version)),
        *((f"operators of {domain or 'ai.onnx'}", str(version)) for domain, version in model.opsets.items()),
        ("model version", str(model.version) if model.version else ""),
        ("domain", model.domain),
        *((model.metadata or {}).items()),
    ]
    return {
        "name": shortened(name or model.graph.name or "model", NAME),
        "facts": entries(facts),
        "doc": shortened(model.doc, DOCUMENT),
    }
