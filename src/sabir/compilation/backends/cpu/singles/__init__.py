"""The families of expressions that are never fused: cumulation, scatter, selection, coupling."""
