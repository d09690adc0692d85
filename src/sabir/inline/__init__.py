"""Calls replaced by what they mean."""

from sabir.inline._engine import inline

__all__ = ["inline"]
