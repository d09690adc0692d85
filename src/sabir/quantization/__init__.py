"""Quantization: models whose weights and activations are integers of 4 or 8 bits."""

from sabir.quantization._quantize import quantize, quantize_and_report
from sabir.quantization._report import NodeReport, Quantization

__all__ = ["NodeReport", "Quantization", "quantize", "quantize_and_report"]
