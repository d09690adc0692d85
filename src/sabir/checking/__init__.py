"""The checker: what is wrong with a model, all of it at once, by the sentences of the standard."""

from typing import TYPE_CHECKING

from sabir.base import importing_later
from sabir.checking._engine import check, chosen, findings
from sabir.checking._rule import GROUPS, RULES, Rule, Rules

if TYPE_CHECKING:
    from sabir.checking._fix import REPAIRS, UNSAFE_REPAIRS, Repair, fix
    from sabir.checking._laws import Law, laws
    from sabir.checking._page import rule_page, rules_document, severity_of
    from sabir.checking._types import finding_of

# repairs, laws and pages are for those who ask; `import sabir` does not wait for them
_LATER = {
    "REPAIRS": "_fix", "UNSAFE_REPAIRS": "_fix", "Repair": "_fix", "fix": "_fix", "Law": "_laws",
    "laws": "_laws", "rule_page": "_page", "rules_document": "_page", "severity_of": "_page",
    "finding_of": "_types",
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
    "finding_of",
    "findings",
    "fix",
    "laws",
    "rule_page",
    "rules_document",
    "severity_of",
]
