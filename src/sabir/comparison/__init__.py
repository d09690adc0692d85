"""What changed between two versions of a model, and which increment of its version that requires."""

from sabir.comparison._aligned import aligned_results
from sabir.comparison._changes import Change
from sabir.comparison._compare import Acceptance, accepts, compare
from sabir.comparison._comparison import Comparison, Declared
from sabir.comparison._policy import BUMPS, POLICY, Bump, Rule
from sabir.comparison._versions import version_text

__all__ = [
    "BUMPS",
    "POLICY",
    "Acceptance",
    "Bump",
    "Change",
    "Comparison",
    "Declared",
    "Rule",
    "accepts",
    "aligned_results",
    "compare",
    "version_text",
]
