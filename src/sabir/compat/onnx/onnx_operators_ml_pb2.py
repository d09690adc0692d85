"""The message classes of operator sets."""

from sabir.compat.onnx.onnx_ml_pb2 import (
    DESCRIPTOR,
    OperatorProto,
    OperatorSetProto,
)

__all__ = [
    "DESCRIPTOR",
    "OperatorProto",
    "OperatorSetProto",
]
