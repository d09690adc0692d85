"""The names of the checker."""

from sabir.compat.onnx._contexts import CheckerContext, LexicalScopeContext
from sabir.compat.onnx._errors import ValidationError

__all__ = ["CheckerContext", "LexicalScopeContext", "ValidationError"]
