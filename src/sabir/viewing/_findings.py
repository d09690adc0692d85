"""The findings of the checker, at the nodes of a page."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from sabir.checking import findings
from sabir.ir import Node
from sabir.viewing._locations import nearest
from sabir.viewing._texts import DOCUMENT, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.base import Finding
    from sabir.ir import Model
    from sabir.schema import Registry

_MOST = 1000


def found_in(model: Model, numbers: Mapping[Node, int], registry: Registry) -> list[dict[str, Any]]:
    """Return the first thousand findings; one that is about a node has its number."""
    return [_entry(model, finding, numbers) for finding in islice(findings(model, registry=registry), _MOST)]


def _entry(model: Model, finding: Finding, numbers: Mapping[Node, int]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "rule": finding.rule,
        "severity": finding.severity,
        "message": shortened(finding.message, DOCUMENT),
        "hint": shortened(finding.hint, DOCUMENT),
        "where": shortened(str(finding.location), DOCUMENT),
    }
    node = nearest(model, finding.location, Node)
    return entry if node is None or node not in numbers else entry | {"node": numbers[node]}
