"""The list of all operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.opsets import STANDARD
from sabir.reference._lookup import operators_of
from sabir.reference._page import file_name, marked

if TYPE_CHECKING:
    from sabir.schema import Operator, Registry


def index(registry: Registry = STANDARD) -> str:
    """Return the Markdown page that lists every operator with its versions.

    >>> index().splitlines()[0]
    '# Operators'
    """
    domains = operators_of(registry)
    operators = sum(map(len, domains.values()))
    versions = sum(len(o.versions) for found in domains.values() for o in found)
    lines = [
        "# Operators",
        "",
        f"{operators} operators in {versions} versions, from the rooms that define them.",
    ]
    for domain, found in domains.items():
        lines += [
            "",
            f"## {domain or 'ai.onnx'}",
            "",
            "| operator | versions | what it computes |",
            "|---|---|---|",
        ]
        lines += map(_row, found)
    return "\n".join(lines) + "\n"


def _row(operator: Operator) -> str:
    since = ", ".join(f"{v.since}{marked(v)}" for v in operator.versions)
    summary = operator.summary.replace("|", "\\|")
    return f"| [{operator.name}]({file_name(operator)}) | {since} | {summary} |"
