"""QuantizeLinear: real numbers as small integers or floats, by a scale and a zero point."""

from sabir.opsets.onnx.quantize_linear import _behaviours, _examples, _gradient
from sabir.opsets.onnx.quantize_linear._history import quantize_linear

__all__ = ["_behaviours", "_examples", "_gradient", "quantize_linear"]
