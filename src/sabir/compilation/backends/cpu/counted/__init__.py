"""The family of kernels that decide how many results there are."""
