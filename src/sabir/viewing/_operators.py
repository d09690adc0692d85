"""What a page says about the operators of a model: the documentation of the version that each call means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.ir import canonical_domain
from sabir.reference import facts_of
from sabir.viewing._texts import DOCUMENT, NAME, TEXT, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Node
    from sabir.schema import Registry


class Operators:
    """The operators that nodes call, numbered; `entries` is what the page has of each."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._numbers: dict[tuple[str, str, str, int | None], int] = {}
        self.entries: list[dict[str, Any]] = []

    def number(self, node: Node, opsets: Mapping[str, int]) -> int:
        """Return the number of the operator of a node, in a graph with these imports."""
        domain = canonical_domain(node.domain)
        opset = opsets.get(domain)
        key = (domain, node.op, node.overload, opset)
        if key not in self._numbers:
            self._numbers[key] = len(self.entries)
            self.entries.append(self._entry(domain, node, opset))
        return self._numbers[key]

    def _entry(self, domain: str, node: Node, opset: int | None) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "name": shortened(node.op, NAME),
            "domain": shortened(domain or "ai.onnx", NAME),
        }
        version = self._registry.find_version(domain, node.op, opset)
        if version is None:
            return entry
        facts = facts_of(version)
        return entry | {
            "version": facts["since_version"],
            "summary": shortened(facts["summary"], DOCUMENT),
            "signature": shortened(facts["signature"], DOCUMENT),
            "inputs": [_described(port) for port in facts["inputs"]],
            "outputs": [_described(port) for port in facts["outputs"]],
            "attributes": [_described(attribute) for attribute in facts["attributes"]],
        }


def _described(part: Mapping[str, Any]) -> list[str]:
    return [shortened(part["name"], NAME), shortened(part["doc"], TEXT)]
