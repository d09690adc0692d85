"""Attention of onnxruntime: queries, keys and values are projections of one input."""

from sabir.opsets.microsoft.attention import _behaviours, _examples
from sabir.opsets.microsoft.attention._history import attention

__all__ = ["_behaviours", "_examples", "attention"]
