"""Changes of models: their dimensions, and large constants replaced."""
