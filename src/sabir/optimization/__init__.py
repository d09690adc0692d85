"""Smaller models that compute the same."""

from sabir.optimization._counts import Counts, count
from sabir.optimization._simplify import Simplification, simplify, simplify_model
from sabir.optimization._verifying import Verification, input_lists, largest_difference, verify_equal

__all__ = [
    "Counts",
    "Simplification",
    "Verification",
    "count",
    "input_lists",
    "largest_difference",
    "simplify",
    "simplify_model",
    "verify_equal",
]
