"""The names of the parser."""

from sabir.compat.onnx.parser import ParseError

__all__ = ["ParseError"]
