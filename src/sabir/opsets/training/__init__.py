"""The operators of `ai.onnx.preview.training`, one room each."""
