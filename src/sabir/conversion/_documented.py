"""Calls of operators that documents define: what becomes of them in another version of their set."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.conversion._roots import roots_of
from sabir.ir import canonical_domain
from sabir.schema import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sabir.ir import Function, Model, Node
    from sabir.schema import Registry


class OutdatedCall(NamedTuple):
    """A call of a documented operator that the target version does not have, or has with another meaning.

    `function` is its body, None where the document has none; `operator` the version, as text.
    """

    node: Node
    operator: str
    function: Function | None


def outdated_calls(model: Model, registry: Registry, opsets: Mapping[str, int]) -> Iterator[OutdatedCall]:
    """Yield the calls of documented operators that do not mean the same in these versions of their sets."""
    if not registry.operator_sets:
        return
    scope = Scope.of(model, registry)
    for root in roots_of(model):
        inner = scope if root.function is None else scope.of_body(root.function)
        for node in root.graph.all_nodes():
            domain = canonical_domain(node.domain)
            before = inner.declaration(node) if domain in opsets else None
            if before is None:
                continue
            after = registry.declaration(domain, node.op, opsets[domain])
            if after is None or after.entry.since != before.entry.since:
                yield OutdatedCall(node, str(before), inner.function_of(node))
