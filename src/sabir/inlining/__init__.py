"""Calls replaced by what they mean."""

from sabir.inlining._engine import inline, inline_in_place
from sabir.inlining._operators import InlineOperators

__all__ = ["InlineOperators", "inline", "inline_in_place"]
