"""The message classes of operator sets, under the name that programs import."""

from sabir.compat.onnx.onnx_operators_ml_pb2 import (
    DESCRIPTOR,
    OperatorProto,
    OperatorSetProto,
)

__all__ = [
    "DESCRIPTOR",
    "OperatorProto",
    "OperatorSetProto",
]
