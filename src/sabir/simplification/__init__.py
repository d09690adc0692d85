"""Tables of rewrite rules, each with the models that prove it, and the pass that applies them."""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public
from sabir.simplification._apply import Simplify
from sabir.simplification._table import REWRITES

if TYPE_CHECKING:
    from sabir.simplification._optimizations import OPTIMIZATIONS
    from sabir.simplification._targets import expand_target, reshape_target

# a session needs the first table alone
_LATER = {"OPTIMIZATIONS": "_optimizations", "expand_target": "_targets", "reshape_target": "_targets"}

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)


__all__ = ["OPTIMIZATIONS", "REWRITES", "Simplify", "expand_target", "reshape_target"]
