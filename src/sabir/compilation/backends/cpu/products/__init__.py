"""The kernels of matrix products and convolutions: GEMM, Winograd's algorithms, and packing."""
