"""Equal nodes and constants of a graph as one: what several readers need is computed once."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from sabir.base import check_time
from sabir.ir import Graph, Tensor, canonical_domain
from sabir.rewriting._replacing import erase_node
from sabir.schema import Callees, Version

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable

    from sabir.ir import Node, Value
    from sabir.schema import Scope

_MOST_BYTES = 1024  # of constants that are compared


def merge_equal(
    graph: Graph, scope: Scope, *, most_bytes: int | None = _MOST_BYTES, kept: Collection[Value] = ()
) -> int:
    """Merge the equal constants and nodes of a graph, and of the graphs inside it; return how many are gone.

    The nodes of each graph must be in topological order. Those with subgraphs, those that draw random
    numbers, and those whose results are outputs of a graph stay. Constants of more than `most_bytes` bytes,
    without a bound where that is None, are not compared, and those of `kept` stay.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { a = Relu (x)  b = Relu (x)  y = Add (a, b) }''')
    >>> merge_equal(model.graph, sabir.schema.Scope.of(model, sabir.opsets.STANDARD)), len(model.graph)
    (1, 2)
    """
    callees = Callees()
    count = 0
    for inner in list(graph.scopes()):
        check_time()
        count += _merge_constants(inner, most_bytes, kept)
        found: dict[Hashable, Node] = {}
        for node in inner:
            key = _key(node) if _is_plain(node, callees.find(node, scope)) else None
            if key is None:
                continue
            first = found.setdefault(key, node)
            if first is not node and not any(
                (v is not None and v.is_output) or v in kept for v in node.outputs
            ):
                count += 1
                for old, new in zip(node.outputs, first.outputs, strict=True):
                    if old is not None and new is not None:
                        old.replace_with(new)
                erase_node(node)
    return count


def _merge_constants(graph: Graph, most_bytes: int | None, kept: Collection[Value]) -> int:
    compared = [
        (value, data)
        for value, data in graph.initializers.items()
        if isinstance(data, Tensor) and _is_mergeable(value, kept)
        and (most_bytes is None or data.nbytes <= most_bytes)
    ]  # fmt: skip
    kinds = Counter((data.element.number, data.shape) for _, data in compared)
    found: dict[Hashable, Value] = {}
    count = 0
    for value, data in compared:
        if kinds[data.element.number, data.shape] == 1:
            continue  # the data of a large model is not read in vain
        first = found.setdefault((data.element.number, data.shape, _contents(data)), value)
        if first is not value:
            count += 1
            value.replace_with(first)
            graph.set_initializer(value, None)
    return count


def _is_mergeable(value: Value, kept: Collection[Value]) -> bool:
    return not (value.is_input or value.is_output or value in kept)


def _contents(data: Tensor) -> bytes:
    """Return what is the same for tensors of equal contents."""
    if data.element.name == "string":
        return repr(data.array().tolist()).encode()
    raw = data.raw()
    return bytes(raw) if data.nbytes <= _MOST_BYTES else hashlib.blake2b(raw).digest()


def _is_plain(node: Node, callee: object) -> bool:
    return isinstance(callee, Version) and not callee.operator.random and not node.graphs


def _key(node: Node) -> Hashable:
    """Return what is the same for nodes that compute the same."""
    return (
        canonical_domain(node.domain), node.op, tuple(node.inputs), tuple(v is None for v in node.outputs),
        frozenset((name, a.type, a.value) for name, a in node.attributes.items()),
    )  # fmt: skip
