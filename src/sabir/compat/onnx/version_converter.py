"""Models in other versions of the default domain."""

from __future__ import annotations

from typing import Any

import sabir
from sabir.compat.onnx._defaults import with_constant_defaults
from sabir.compat.onnx._errors import ConvertError, raising
from sabir.compat.onnx.defs import _registering
from sabir.compat.onnx.onnx_ml_pb2 import ModelProto
from sabir.serial import from_proto, to_proto


def convert_version(model: Any, target_version: int) -> Any:
    """Return a ModelProto in a version of the default domain, up or down.

    Raises ConvertError where operators have no equivalent there, and for an unknown version; TypeError for
    another object than a ModelProto.
    """
    if not isinstance(model, ModelProto):
        raise TypeError(f"convert_version takes a ModelProto, and this is of type {type(model).__name__}")
    version: Any = target_version
    if not isinstance(version, int):
        raise TypeError(f"target_version is an int, and this is {version!r}")
    with raising(ConvertError):
        registry = _registering.current()
        return to_proto(
            with_constant_defaults(
                from_proto(model), lambda m: sabir.convert(m, target_version, registry=registry)
            )
        )


__all__ = ["ConvertError", "convert_version"]
