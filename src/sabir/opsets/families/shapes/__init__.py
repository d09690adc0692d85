"""Shapes, axes, ranks, known contents, and padding."""
