"""Calls replaced by what they mean."""

from sabir.inlining._engine import inline

__all__ = ["inline"]
