"""Gradients: models that also compute the derivatives of a value with respect to others."""

from sabir.differentiation._differentiate import differentiate

__all__ = ["differentiate"]
