"""The family of elementwise kernels: loop nests of maps, folds, copies, gathers and scatters."""
