"""Reductions, cumulative operations and extremes along axes."""
