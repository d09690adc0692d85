"""The cases: those of Sabir's operators, and those that programs add."""

from __future__ import annotations

from sabir.compat.onnx.backend.test.case.base import Base


def collect_snippets() -> dict[str, list[tuple[str, str]]]:
    """Return the names and statements of the functions of subclasses of `Base`, by the name of the class."""
    return {name: list(snippets) for name, snippets in Base.snippets.items()}


__all__ = ["collect_snippets"]
