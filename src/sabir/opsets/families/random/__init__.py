"""Random numbers: their attributes, types, and kernels."""
