"""Patterns of calls, and rules that rewrite what they match."""

from sabir.patterns._apply import ApplyRules
from sabir.patterns._match import Match
from sabir.patterns._pattern import Pattern, PatternBuilder
from sabir.patterns._rule import RewriteRule
from sabir.patterns._rules_file import load_rules, parse_rules
from sabir.patterns._why_not import Refusal, refusals, why_not

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
