"""The operators, one module each; `STANDARD` finds them by name."""

from sabir.schema import Registry, Rooms

STANDARD = Registry({"": Rooms("sabir.opsets.onnx")})

__all__ = ["STANDARD"]
