"""The checker: finds every violation of the standard's rules in a model."""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public
from sabir.checking._engine import check, chosen, findings
from sabir.checking._findings import Findings
from sabir.checking._rule import GROUPS, RULES, Rule, Rules

if TYPE_CHECKING:
    from sabir.checking._described import described_twice
    from sabir.checking._identifiers import KEYWORDS
    from sabir.checking._laws import Law, laws
    from sabir.checking._operator_sets import SetSite, SetSurvey
    from sabir.checking._page import Repairable, rule_page, rules_document, severity_of
    from sabir.checking._set_changes import OperatorChange, SetChanges, set_changes
    from sabir.checking._survey import AttributeSite, FunctionSite, GraphSite, Survey
    from sabir.checking._types import finding_of

# imported on first use, so that `import sabir` stays fast
_LATER = {
    "AttributeSite": "_survey", "FunctionSite": "_survey", "GraphSite": "_survey", "KEYWORDS": "_identifiers",
    "Law": "_laws", "OperatorChange": "_set_changes", "Repairable": "_page", "SetChanges": "_set_changes",
    "SetSite": "_operator_sets", "SetSurvey": "_operator_sets",
    "Survey": "_survey", "described_twice": "_described", "finding_of": "_types",
    "laws": "_laws", "rule_page": "_page", "rules_document": "_page", "set_changes": "_set_changes",
    "severity_of": "_page",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)


__all__ = [
    "GROUPS",
    "KEYWORDS",
    "RULES",
    "AttributeSite",
    "Findings",
    "FunctionSite",
    "GraphSite",
    "Law",
    "OperatorChange",
    "Repairable",
    "Rule",
    "Rules",
    "SetChanges",
    "SetSite",
    "SetSurvey",
    "Survey",
    "check",
    "chosen",
    "described_twice",
    "finding_of",
    "findings",
    "laws",
    "rule_page",
    "rules_document",
    "set_changes",
    "severity_of",
]
