"""Patterns of calls, and rules that rewrite what they match."""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public
from sabir.patterns._apply import ApplyRules
from sabir.patterns._match import Match
from sabir.patterns._pattern import Pattern, PatternBuilder
from sabir.patterns._rule import RewriteRule

if TYPE_CHECKING:
    from sabir.patterns._rules_file import load_rules, parse_rules
    from sabir.patterns._why_not import Refusal, refusals, why_not

# sessions apply rules, and neither read files of them nor explain them
_LATER = {
    "Refusal": "_why_not", "load_rules": "_rules_file", "parse_rules": "_rules_file", "refusals": "_why_not",
    "why_not": "_why_not",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)


__all__ = [
    "ApplyRules",
    "Match",
    "Pattern",
    "PatternBuilder",
    "Refusal",
    "RewriteRule",
    "load_rules",
    "parse_rules",
    "refusals",
    "why_not",
]
