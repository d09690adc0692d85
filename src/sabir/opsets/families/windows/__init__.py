"""Convolutions and poolings: windows, their mathematics, kernels and gradients."""
