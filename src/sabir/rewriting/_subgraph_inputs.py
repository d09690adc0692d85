"""Inputs of subgraphs that are initializers too: constants of subgraphs up to IR 3, forbidden since."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import CONSTANTS
from sabir.schema import Scope, supplied_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Graph, Model, Node, Value
    from sabir.schema import Registry


class SeparatedInput(NamedTuple):
    """A value that was an input and an initializer of a subgraph, and is one of them now.

    `place` is its index among the inputs; it is still an input if the node supplies it.

    >>> SeparatedInput(sabir.ir.Value('w'), 3, is_supplied=False).value.name
    'w'
    """

    value: Value
    place: int
    is_supplied: bool


def separate_inputs(node: Node, graph: Graph, scope: Scope) -> list[SeparatedInput]:
    """Make each value of a node's subgraph that is an input and an initializer only one of them.

    The initializer of an input that the node supplies has no effect, and is dropped. Any other such input is
    a constant, and is an input no more. Of an operator that the registry does not know nothing is changed.

    >>> from sabir.opsets import STANDARD
    >>> model = sabir.parse('''<ir_version: 3, opset_import: ["" : 8]>
    ... g (int64 n, bool c, float[2] x) => (float[2] y) { y = Loop (n, c, x) <body = b (int64 i, bool k,
    ... float[2] s, float[2] w = {1, 2}) => (bool k2, float[2] s2) { k2 = Identity(k)  s2 = Add(s, w) }> }''')
    >>> loop = model.graph[0]
    >>> [s.value.name for s in separate_inputs(loop, loop.graphs[0], sabir.schema.Scope.of(model, STANDARD))]
    ['w']
    >>> [value.name for value in loop.graphs[0].inputs]
    ['i', 'k', 's']
    """
    both = [(i, v) for i, v in enumerate(graph.inputs) if v in graph.initializers]
    version = scope.version(node) if both else None
    if version is None:
        return []
    supplied = supplied_inputs(version.inputs, len(node.inputs))
    found = [SeparatedInput(value, index, index < supplied) for index, value in both]
    for value, index, is_supplied in reversed(found):
        if is_supplied:
            graph.set_initializer(value, None)
        else:
            del graph.inputs[index]
    return found


def change_ir_version(model: Model, ir_version: int, registry: Registry) -> list[SeparatedInput]:
    """Set the IR version, and separate the inputs of subgraphs where IR 4 demands it.

    >>> from sabir.opsets import STANDARD
    >>> model = sabir.parse('''<ir_version: 3, opset_import: ["" : 7]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> change_ir_version(model, 8, STANDARD), model.ir_version
    ([], 8)
    """
    crosses = model.ir_version < CONSTANTS.since <= ir_version
    model.ir_version = ir_version
    if not crosses:
        return []
    subgraphs = _subgraphs(model, registry)
    return [s for node, graph, scope in subgraphs for s in separate_inputs(node, graph, scope)]


def _subgraphs(model: Model, registry: Registry) -> Iterator[tuple[Node, Graph, Scope]]:
    scope = Scope.of(model, registry, newer_opsets=True)
    bodies = {function.graph: function for function in model.functions}
    for root in model.graphs():
        function = bodies.get(root)
        inner = scope if function is None else scope.of_body(function)
        for node in root.all_nodes():
            for graph in node.graphs:
                yield node, graph, inner
