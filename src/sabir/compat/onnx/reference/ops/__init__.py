"""The operators as classes."""

from sabir.compat.onnx.reference.ops._op_list import load_op

__all__ = ["load_op"]
