"""Operators of the domain ai.onnx.preview.training."""
