"""The names of onnx's C++ module that programs import: the same classes as those of the Python modules."""

from sabir.compat.onnx.onnx_cpp2py_export import checker, defs, parser, shape_inference, version_converter

ONNX_ML = True

__all__ = ["ONNX_ML", "checker", "defs", "parser", "shape_inference", "version_converter"]
