"""Calls replaced by what they mean."""

from sabir.inlining._engine import inline
from sabir.inlining._operators import InlineOperators

__all__ = ["InlineOperators", "inline"]
