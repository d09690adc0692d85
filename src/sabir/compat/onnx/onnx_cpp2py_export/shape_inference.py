"""The names of inference."""

from sabir.compat.onnx._contexts import GraphInferencer, InferenceContext
from sabir.compat.onnx._errors import InferenceError

__all__ = ["GraphInferencer", "InferenceContext", "InferenceError"]
