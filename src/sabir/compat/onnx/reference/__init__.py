"""Models run on numpy, with operators that a program may define."""

from sabir.compat.onnx.reference.reference_evaluator import ReferenceEvaluator

__all__ = ["ReferenceEvaluator"]
