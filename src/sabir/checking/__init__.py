"""The checker: what is wrong with a model, all of it at once, by the sentences of the standard."""

import importlib
from typing import TYPE_CHECKING, Any

from sabir.checking._engine import check, chosen, findings
from sabir.checking._rule import GROUPS, RULES, Rule, Rules

if TYPE_CHECKING:
    from sabir.checking._fix import REPAIRS, UNSAFE_REPAIRS, Repair, fix
    from sabir.checking._laws import Law, laws
    from sabir.checking._page import rule_page, rules_document, severity_of

# repairs, laws and pages are for those who ask; `import sabir` does not wait for them
_LATER = {
    "REPAIRS": "_fix", "UNSAFE_REPAIRS": "_fix", "Repair": "_fix", "fix": "_fix", "Law": "_laws",
    "laws": "_laws", "rule_page": "_page", "rules_document": "_page", "severity_of": "_page",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


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
