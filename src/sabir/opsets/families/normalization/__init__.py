"""Normalisations and softmax axes: evaluation, kernels and gradients."""
