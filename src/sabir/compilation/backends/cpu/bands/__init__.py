"""The family of bands: chains of kernels that run for some rows of an image after others."""
