"""Targets that plans are compiled for: `sabir.compilation.protocol` is what each provides."""
