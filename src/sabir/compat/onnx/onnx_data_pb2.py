"""The message classes of values: sequences, maps, optionals."""

from sabir.compat.onnx.onnx_ml_pb2 import (
    DESCRIPTOR,
    MapProto,
    OptionalProto,
    SequenceProto,
)

__all__ = [
    "DESCRIPTOR",
    "MapProto",
    "OptionalProto",
    "SequenceProto",
]
