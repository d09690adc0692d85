"""Fusion: groups of expressions that one kernel computes, and the places of tensors in memory."""
