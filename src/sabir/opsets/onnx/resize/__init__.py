"""Resize: a tensor sampled anew, by scales or to sizes."""

from sabir.opsets.onnx.resize import _behaviours, _examples
from sabir.opsets.onnx.resize._history import resize

__all__ = ["_behaviours", "_examples", "resize"]
