"""Attention: scaled dot-product attention over heads, with masks and a cache of keys and values."""

from sabir.opsets.onnx.attention import _behaviours, _examples, _gradient
from sabir.opsets.onnx.attention._history import attention

__all__ = ["_behaviours", "_examples", "_gradient", "attention"]
