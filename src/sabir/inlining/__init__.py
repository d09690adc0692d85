"""Calls replaced by what they mean."""

from sabir.inlining._domains import Inlining, inline_domains
from sabir.inlining._engine import inline, inline_in_place
from sabir.inlining._operators import InlineOperators

__all__ = ["InlineOperators", "Inlining", "inline", "inline_domains", "inline_in_place"]
