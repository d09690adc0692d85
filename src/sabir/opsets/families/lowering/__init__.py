"""Lowering that several rooms share."""
