"""Fourier transforms and cosine windows."""
