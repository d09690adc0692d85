"""Kernels: LLVM IR for loops over tensors."""
