"""How messages name a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote

if TYPE_CHECKING:
    from sabir.ir import Node

ORIGIN = "sabir.origin"
"""The metadata of a node that takes a part in the computation of another one: the label of that node."""


def label_of(node: Node) -> str:
    """Return the operator of a node with the node's name, or else with its first output.

    A node that was made of another one has the label of that one.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> print(label_of(model.graph[0]))
    Relu with output 'y'
    """
    if node.metadata and ORIGIN in node.metadata:
        return node.metadata[ORIGIN]
    name = f" {quote(node.name)}" if node.name else ""
    output = next((v.name for v in node.outputs if v is not None and v.name), "")
    return f"{node.op}{name}{f' with output {quote(output)}' if output and not name else ''}"
