"""Tables of rewrite rules, each with the models that prove it, and the pass that applies them."""

from sabir.simplification._apply import Simplify
from sabir.simplification._optimizations import OPTIMIZATIONS
from sabir.simplification._table import REWRITES
from sabir.simplification._targets import expand_target, reshape_target

__all__ = ["OPTIMIZATIONS", "REWRITES", "Simplify", "expand_target", "reshape_target"]
