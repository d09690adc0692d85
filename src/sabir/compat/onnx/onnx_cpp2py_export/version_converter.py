"""The names of the version converter."""

from sabir.compat.onnx._errors import ConvertError

__all__ = ["ConvertError"]
