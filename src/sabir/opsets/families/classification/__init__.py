"""Models of ai.onnx.ml that classify: labels, transforms of scores, support vectors."""
