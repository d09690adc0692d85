"""Scaled dot-product attention: evaluation, graphs, kernels and gradients."""
