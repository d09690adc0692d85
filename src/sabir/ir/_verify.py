"""The invariants of the linked graph, for tests and for whoever writes edits.

`verify` is about the objects (links both ways, order, parents), not about the rules of the standard, which
`sabir.check` covers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir._graph import Graph, Node, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir._model import Model


def verify(model: Model | Graph) -> None:
    """Raise ValueError naming the first broken link, or a value that is read before it is defined."""
    graphs = [model] if isinstance(model, Graph) else list(model.graphs())
    for graph in graphs:
        for problem in _problems(graph, frozenset()):
            raise ValueError(problem)


def _problems(graph: Graph, outer: frozenset[Value]) -> Iterator[str]:
    defined = set(outer)
    for value in (*graph.inputs, *graph.initializers):
        if value.source is not graph:
            yield f"{value!r} is an input or initializer of {graph!r}, but its source is {value.source!r}"
        defined.add(value)
    for node in graph:
        yield from _node_problems(node, graph, defined)
        defined.update(v for v in node.outputs if v is not None)
    for slot, value in enumerate(graph.outputs):
        yield from _read_problems(graph, slot, value, defined)


def _node_problems(node: Node, graph: Graph, defined: set[Value]) -> Iterator[str]:
    if node.graph is not graph:
        yield f"{node!r} stands in {graph!r}, but its graph is {node.graph!r}"
    for slot, value in enumerate(node.inputs):
        yield from _read_problems(node, slot, value, defined)
    for value in node.outputs:
        if value is not None and value.source is not node:
            yield f"{value!r} is an output of {node!r}, but its source is {value.source!r}"
    for inner in node.graphs:
        if inner.parent is not node:
            yield f"{inner!r} is an attribute of {node!r}, but its parent is {inner.parent!r}"
        yield from _problems(inner, frozenset(defined))


def _read_problems(user: Node | Graph, slot: int, value: Value | None, defined: set[Value]) -> Iterator[str]:
    if value is None:
        return
    if (user, slot) not in value.uses:
        yield f"{user!r} reads {value!r} in slot {slot}, but the value does not know it"
    if value not in defined:
        yield f"{user!r} reads {value!r} before anything defines it"
