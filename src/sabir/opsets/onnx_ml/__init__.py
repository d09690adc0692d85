"""The operators of `ai.onnx.ml`, one room each."""
