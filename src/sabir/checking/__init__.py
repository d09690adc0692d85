"""The checker: finds every violation of the standard's rules in a model."""

from typing import TYPE_CHECKING

from sabir.base import importing_later
from sabir.checking._engine import check, chosen, findings
from sabir.checking._rule import GROUPS, RULES, Rule, Rules

if TYPE_CHECKING:
    from sabir.checking._fix import REPAIRS, UNSAFE_REPAIRS, Repair, fix
    from sabir.checking._laws import Law, laws
    from sabir.checking._page import rule_page, rules_document, severity_of

# imported on first use, so that `import sabir` stays fast
_LATER = {
    "REPAIRS": "_fix", "UNSAFE_REPAIRS": "_fix", "Repair": "_fix", "fix": "_fix", "Law": "_laws",
    "laws": "_laws", "rule_page": "_page", "rules_document": "_page", "severity_of": "_page",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)


__all__ = [
    "GROUPS",
    "REPAIRS",
    "RULES",
    "UNSAFE_REPAIRS",
    "Law",
    "Repair",
    "Rule",
    "Rules",
    "check",
    "chosen",
    "findings",
    "fix",
    "laws",
    "rule_page",
    "rules_document",
    "severity_of",
]
