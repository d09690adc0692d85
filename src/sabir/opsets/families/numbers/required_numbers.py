"""Attributes that a signature does not require, and whose operator has no meaning without them."""

from __future__ import annotations

from sabir.base import InferenceError
from sabir.ir import TensorType


def check_given(*, alpha: float | None, beta: float | None) -> tuple[float, float]:
    """Return two attributes; raises InferenceError where a call does not state one."""
    if alpha is None or beta is None:
        name = "alpha" if alpha is None else "beta"
        raise InferenceError(f"the attribute `{name}` is missing, and has no default")
    return alpha, beta


def infer_scaled(x: TensorType, /, *, alpha: float | None, beta: float | None) -> TensorType:
    """The type of the input; raises InferenceError where a call does not state an attribute."""
    check_given(alpha=alpha, beta=beta)
    return TensorType(x.element, x.shape)
