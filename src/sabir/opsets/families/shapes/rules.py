"""Type inference that many operators share."""

from __future__ import annotations

from sabir.ir import TensorType


def same_as_first(x: TensorType, /, *_: TensorType | None) -> TensorType:
    """The output has the element type and the shape of the first input."""
    return TensorType(x.element, x.shape)
