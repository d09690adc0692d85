"""Calls of operators, and the same in PyTorch: what `tools/record_gradients.py` records the gradients of."""
