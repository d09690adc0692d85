"""Equal nodes of a backward part as one: what several gradients need is computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import check_time
from sabir.ir import Graph, Tensor, canonical_domain
from sabir.rewrite import erase_node
from sabir.schema import Callees, Version

if TYPE_CHECKING:
    from collections.abc import Hashable

    from sabir.ir import Node, Value
    from sabir.schema import Scope

_MOST_BYTES = 1024  # of constants that are compared


def merge_equal(graph: Graph, scope: Scope) -> None:
    """Merge the equal constants and nodes of a graph under construction, and of the graphs inside it.

    The nodes of each graph must be in topological order. Those with subgraphs, those that draw random
    numbers, and those whose results are outputs of a graph stay.
    """
    callees = Callees()
    for inner in list(graph.scopes()):
        check_time()
        _merge_constants(inner)
        found: dict[Hashable, Node] = {}
        for node in inner:
            key = _key(node) if _is_plain(node, callees.find(node, scope)) else None
            if key is None:
                continue
            first = found.setdefault(key, node)
            if first is not node and not any(_is_output(v) for v in node.outputs):
                for old, new in zip(node.outputs, first.outputs, strict=True):
                    if old is not None and new is not None:
                        old.replace_with(new)
                erase_node(node)


def _merge_constants(graph: Graph) -> None:
    found: dict[Hashable, Value] = {}
    for value, data in list(graph.initializers.items()):
        if not isinstance(data, Tensor) or data.nbytes > _MOST_BYTES or value.is_input or _is_output(value):
            continue
        first = found.setdefault((data.element.number, data.shape, bytes(data.raw())), value)
        if first is not value:
            value.replace_with(first)
            graph.set_initializer(value, None)


def _is_plain(node: Node, callee: object) -> bool:
    return isinstance(callee, Version) and not callee.operator.random and not node.graphs


def _key(node: Node) -> Hashable:
    """Return what is the same for nodes that compute the same."""
    return (
        canonical_domain(node.domain), node.op, tuple(node.inputs), tuple(v is None for v in node.outputs),
        frozenset((name, a.type, a.value) for name, a in node.attributes.items()),
    )  # fmt: skip


def _is_output(value: Value | None) -> bool:
    return value is not None and any(isinstance(use.user, Graph) for use in value.uses)
