"""Tensors read at computed coordinates: resizing, sampling, regions, deformed windows."""
