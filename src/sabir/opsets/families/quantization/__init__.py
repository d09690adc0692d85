"""Linear quantization: evaluation, kernels and graphs."""
