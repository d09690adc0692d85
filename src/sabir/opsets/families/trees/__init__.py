"""Ensembles of decision trees: their attributes, evaluation and kernels."""
