"""The family of products: matrix products and convolutions as GEMM, Winograd, packing."""
