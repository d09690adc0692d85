"""Which values carry gradients, and what stops them on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Node, OptionalType, SequenceType, TensorType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Graph, Type, Value

# their results depend on no number of an operand, so the derivative is zero
_STRUCTURAL = frozenset({"OptionalHasElement", "SequenceLength", "Shape", "Size"})


def carries_gradient(type_: Type | None) -> bool:
    """Return whether a value of this type has a gradient: floating-point numbers, and containers of them.

    A value of unknown type may have one.
    """
    match type_:
        case None:
            return True
        case TensorType():
            return type_.element.is_float or not type_.element.number
        case SequenceType() | OptionalType():
            return carries_gradient(type_.item)
        case _:
            return False


def reads(node: Node) -> Iterator[Value]:
    """Yield the operands of a node and what its subgraphs capture."""
    yield from (v for v in node.inputs if v is not None)
    for graph in node.graphs:
        yield from graph.captures()


def results(node: Node) -> Iterator[Value]:
    """Yield the outputs that a node names."""
    yield from (v for v in node.outputs if v is not None)


def defined_by(node: Node) -> Iterator[Value]:
    """Yield the outputs of a node, and the values that its subgraphs define."""
    yield from results(node)
    for graph in node.graphs:
        for inner in graph.scopes():
            yield from inner.defined()


def reached(graph: Graph, sources: Iterable[Value]) -> set[Value]:
    """Return the values that carry gradients from a graph's results to `sources`, which are among them.

    These depend on the sources through floating-point values alone. Subgraphs count as part of their node.
    """
    found = set(sources)
    for node in graph.sorted_nodes():
        if any(v in found for v in reads(node)):
            found.update(v for v in results(node) if carries_gradient(v.type))
    return found


def path(graph: Graph, sources: Iterable[Value], target: Value) -> list[Node]:
    """Return the nodes by which a value depends on `sources` through floating-point values."""
    carrying, needed, found = reached(graph, sources), {target}, list[Node]()
    for node in reversed(graph.sorted_nodes()):
        if any(v in needed for v in results(node)) and any(v in carrying for v in reads(node)):
            needed.update(reads(node))
            found.append(node)
    return found


def _depends(node: Node, dependent: set[Value]) -> bool:
    """Return whether numbers of a node depend on numbers of some values, and not on their shapes alone."""
    if node.op in _STRUCTURAL or not any(v in dependent for v in reads(node)):
        return False
    return not node.graphs or any(_passes(graph, dependent) for graph in node.graphs)


def _passes(graph: Graph, around: set[Value]) -> bool:
    """Return whether results of a subgraph depend on its inputs, or on some values around it."""
    dependent = {*around, *graph.inputs}
    for node in graph.sorted_nodes():
        if _depends(node, dependent):
            dependent.update(results(node))
    return any(v in dependent for v in graph.outputs)


def blockers(graph: Graph, source: Value, target: Value, stopped: Iterable[Node]) -> list[Node]:
    """Return the nodes at which gradients from `target` to `source` end; none where no path leads there.

    `stopped` are the nodes whose operator passed no gradient on.
    """
    order = graph.sorted_nodes()
    dependent, carrying = {source}, reached(graph, [source])
    for node in order:
        if _depends(node, dependent):
            dependent.update(results(node))
    if target not in dependent:
        return []
    needed = {target}
    for node in reversed(order):
        if any(v in needed for v in results(node)):
            needed.update(reads(node))
    ends = set(stopped)
    return [node for node in order if _ends(node, carrying, needed & dependent, ends)]


def _ends(node: Node, carrying: set[Value], on_path: set[Value], stopped: set[Node]) -> bool:
    """Return whether a node on a path reads a value that carries gradients and computes none that does."""
    outputs = [v for v in results(node) if v in on_path]
    if not outputs or not any(v in carrying and v in on_path for v in reads(node)):
        return False
    return node in stopped or not any(v in carrying for v in outputs)
