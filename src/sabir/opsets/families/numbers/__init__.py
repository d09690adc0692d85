"""Arithmetic on elements: broadcasting, casts, powers, approximations."""
