"""The message classes of values, under the name that programs import."""

from sabir.compat.onnx.onnx_data_pb2 import (
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
