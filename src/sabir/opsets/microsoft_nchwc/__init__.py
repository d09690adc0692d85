"""The operators of `com.microsoft.nchwc`: those of models that onnxruntime optimised for blocked layouts."""
