"""Messages in the text syntax of the standard."""

from __future__ import annotations

from typing import Any

from sabir.compat.onnx.onnx_ml_pb2 import FunctionProto, GraphProto, ModelProto, NodeProto
from sabir.serial import from_proto, text

_PRINTABLE = (ModelProto, FunctionProto, GraphProto, NodeProto)


def to_text(proto: Any) -> str:
    """Return a model, a function, a graph or a node in the text syntax; raises TypeError."""
    if not isinstance(proto, _PRINTABLE):
        raise TypeError(
            f"to_text writes a ModelProto, FunctionProto, GraphProto or NodeProto, and this is a "
            f"{type(proto).__name__}"
        )
    return text(from_proto(proto))


__all__ = ["to_text"]
