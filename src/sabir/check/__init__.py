"""The checker: what is wrong with a model, all of it at once."""

from sabir.check._engine import check, findings

__all__ = ["check", "findings"]
