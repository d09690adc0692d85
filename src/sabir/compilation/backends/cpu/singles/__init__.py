"""The families of expressions with one kernel each: cumulation, scatter, selection, coupling."""
