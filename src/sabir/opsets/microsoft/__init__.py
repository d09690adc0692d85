"""The operators of `com.microsoft`, which onnxruntime adds to the standard, one room each."""
