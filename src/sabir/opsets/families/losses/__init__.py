"""Losses of labels: evaluation, kernels and gradients."""
