"""Findings that follow from other findings: they disappear when the cause is repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.base import Finding, Location
    from sabir.ir import Graph, Node, Value

_UNTYPED = "GRAPH002"


def without_consequences(found: list[Finding], graph: Graph) -> list[Finding]:
    """Return the findings, without untyped outputs of the main graph that depend on a node with an error.

    Inference cannot type such an output until the node is repaired.
    """
    if not any(f.rule == _UNTYPED for f in found):
        return found
    nodes = tuple(graph)
    wrong = {nodes[place] for f in found if f.severity == "error" for place in _node_of(f.location)}
    if not wrong:
        return found
    return [f for f in found if f.rule != _UNTYPED or not _depends(_output_of(f.location, graph), wrong)]


def _node_of(where: Location) -> Iterable[int]:
    """Return the index of the node of the main graph that a location is in, if any."""
    steps = where.steps
    if len(steps) > 1 and steps[0].kind == "graph" and steps[1].kind == "node" and steps[1].place is not None:
        return (steps[1].place,)
    return ()


def _output_of(where: Location, graph: Graph) -> Value | None:
    step = where.steps[-1]
    return graph.outputs[step.place] if step.kind == "output" and step.place is not None else None


def _depends(value: Value | None, wrong: set[Node]) -> bool:
    """Whether a value depends, directly or not, on a result of one of these nodes."""
    pending: list[Value | None] = [value]
    seen: set[Node] = set()
    while pending:
        value = pending.pop()
        node = None if value is None else value.node
        if node in wrong:
            return True
        if node is not None and node not in seen:
            seen.add(node)
            pending += node.inputs
            pending += (v for inner in node.graphs for v in inner.captures())
    return False
