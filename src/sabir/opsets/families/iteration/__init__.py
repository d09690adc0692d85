"""Loops and scans: the types of their values, their steps, kernels and gradients."""
