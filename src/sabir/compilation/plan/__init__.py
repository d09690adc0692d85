"""Plans as data: entries with their arguments, buffers, and layouts in memory for sizes."""
