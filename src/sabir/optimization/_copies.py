"""Outputs of a graph that are copies of computed values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import canonical_domain
from sabir.rewriting import erase_node

if TYPE_CHECKING:
    from collections.abc import Collection

    from sabir.ir import Model, Node, Value


class DropCopies(NamedTuple):
    """The pass that lets a node compute an output of its graph where only a copy of its result was one.

    The output keeps its name; the value that was copied is gone, unless it is one of `kept`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { a = Relu (x)  y = Identity (a) }''')
    >>> DropCopies().run(model), model.graph[0].output.name
    (True, 'y')
    """

    kept: Collection[Value] = ()
    name: str = "drop copies"

    def run(self, model: Model) -> bool:
        """Drop the copies of the main graph and its subgraphs, and return whether there were any."""
        found = False
        for graph in model.graph.scopes():
            annotated = {v for a in graph.annotations for v in (a.value, *(v for _, v in a.parameters))}
            for output in graph.outputs:
                node = None if output is None else output.node
                if output is None or node is None or not is_copy(node) or node.graph is not graph:
                    continue
                source, maker = node.inputs[0], None if node.inputs[0] is None else node.inputs[0].node
                if source is None or maker is None or maker.graph is not graph or source.is_output:
                    continue
                if source in self.kept or source in annotated or output in annotated:
                    continue
                _take_over(node, source, output, maker)
                found = True
        return found


def is_copy(node: Node) -> bool:
    """Return whether a node is a call of Identity."""
    return node.op == "Identity" and not canonical_domain(node.domain) and len(node.inputs) == 1


def _take_over(copy: Node, source: Value, output: Value, maker: Node) -> None:
    """Let `maker` compute `output` instead of `source`, which `copy` copied."""
    copy.outputs = ()
    maker.replace_output(source, output)
    del copy.inputs[:]
    erase_node(copy)
