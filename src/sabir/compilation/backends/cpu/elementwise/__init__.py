"""The family of elementwise kernels: loop nests over maps, folds and moves."""
