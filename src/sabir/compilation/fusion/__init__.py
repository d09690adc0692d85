"""Fusion: which expressions one kernel computes, and where tensors are in memory."""
