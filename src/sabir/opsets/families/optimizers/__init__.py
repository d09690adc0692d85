"""Steps of optimizers: evaluation and kernels."""
