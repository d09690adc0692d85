"""Copies of nodes in the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.differentiation._activity import defined_by
from sabir.ir import clone_node

if TYPE_CHECKING:
    from sabir.ir import FreshNames, Node, Value


def copied(node: Node, names: FreshNames, copies: dict[Value, Value | None] | None = None) -> Node:
    """Return a detached copy of a node whose values have fresh names, and whose nodes have none.

    `copies` has replacements for what the node reads, and is filled with those of its values.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> print(copied(model.graph[0], sabir.ir.FreshNames(['y'])).output.name)
    y_1
    """
    copy = clone_node(node, copies)
    for value in defined_by(copy):
        value.name = names.fresh(value.name)
    for new in (copy, *(n for graph in copy.graphs for n in graph.all_nodes())):
        new.name = ""  # names of nodes are unique
    return copy
