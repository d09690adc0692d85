"""Simplification: rewrites that are declared with the models that prove them, and applied as one pass."""

from sabir.simplification._apply import Simplify
from sabir.simplification._declaration import Match, Rewrite
from sabir.simplification._optimizations import OPTIMIZATIONS
from sabir.simplification._pattern import Pattern
from sabir.simplification._table import REWRITES
from sabir.simplification._targets import expand_target, reshape_target

__all__ = [
    "OPTIMIZATIONS",
    "REWRITES",
    "Match",
    "Pattern",
    "Rewrite",
    "Simplify",
    "expand_target",
    "reshape_target",
]
