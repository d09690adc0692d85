"""The operators of `ai.onnx.contrib`, which onnxruntime-extensions adds, one room each."""
