"""Tensor expressions: what rooms lower operators to, and what the compiler makes kernels of."""
