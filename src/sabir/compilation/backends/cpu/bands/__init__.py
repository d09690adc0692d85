"""The family of bands: chains of kernels that run for one band of rows of an image after another."""
