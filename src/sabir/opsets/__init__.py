"""The operators, one module each; `STANDARD` finds them by domain and name."""

from sabir.schema import Registry, Rooms

STANDARD = Registry({
    "": Rooms("sabir.opsets.onnx"),
    "ai.onnx.ml": Rooms("sabir.opsets.onnx_ml"),
    "ai.onnx.preview": Rooms("sabir.opsets.preview"),
    "ai.onnx.preview.training": Rooms("sabir.opsets.training"),
})

__all__ = ["STANDARD"]
