"""Plans as data: entries with their arguments, buffers, liveness, and layouts in memory for sizes."""
