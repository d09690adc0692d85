"""Gradients: models that also compute the derivatives of a value with respect to others."""

from sabir.differentiation._activity import dequantizes
from sabir.differentiation._copying import copied
from sabir.differentiation._differentiate import differentiate
from sabir.differentiation._operators import expand_in_graph

__all__ = ["copied", "dequantizes", "differentiate", "expand_in_graph"]
