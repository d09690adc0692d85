"""The operators of `ai.onnx.preview`, one room each."""
