"""Smaller models that compute the same."""

from sabir.optimization._counts import Counts, count
from sabir.optimization._proving import prove
from sabir.optimization._rewrite import Rewriting, explain_node, rewrite, rewrite_and_report
from sabir.optimization._simplify import Simplification, simplify, simplify_model
from sabir.optimization._verifying import Verification, input_lists, largest_difference, verify_equal

__all__ = [
    "Counts",
    "Rewriting",
    "Simplification",
    "Verification",
    "count",
    "explain_node",
    "input_lists",
    "largest_difference",
    "prove",
    "rewrite",
    "rewrite_and_report",
    "simplify",
    "simplify_model",
    "verify_equal",
]
