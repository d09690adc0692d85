"""Recurrent layers and linear attention: shapes, steps, kernels and gradients."""
