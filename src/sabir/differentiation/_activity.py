"""Which values carry gradients, and what stops them on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.elements import BOOL
from sabir.ir import Node, OptionalType, SequenceType, TensorType, canonical_domain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Graph, Type, Value

# their results depend on no number of an operand, so the derivative is zero
_STRUCTURAL = frozenset({"OptionalHasElement", "SequenceLength", "Shape", "Size"})

# their integers encode real numbers, so a derivative of zero would hide that training stops there
_ENCODING = frozenset({"BitCast", "DynamicQuantizeLinear", "QuantizeLinear"})
_ENCODING_PREFIXES = ("QAttention", "QGemm", "QLinear", "QOrdered")


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


def carries(value: Value) -> bool:
    """Return whether a value has a gradient: by its type, or as the integers of a quantization.

    The integers between QuantizeLinear and DequantizeLinear have one, in floating point: rounding counts as
    the identity there (a straight-through estimator).
    """
    return carries_gradient(value.type) or _is_quantized(value)


def passes(node: Node, operand: Value) -> bool:
    """Return whether a gradient may pass through a node to an operand that carries gradients."""
    return carries_gradient(operand.type) or _is_call(node, "DequantizeLinear")


def dequantizes(node: Node, operand: Value) -> bool:
    """Return whether a node is DequantizeLinear and reads integers that QuantizeLinear computes."""
    return _is_call(node, "DequantizeLinear") and _is_quantized(operand)


def _is_quantized(value: Value) -> bool:
    """Return whether a value has integers that QuantizeLinear computes and DequantizeLinear reads."""
    if value.node is None or not _is_call(value.node, "QuantizeLinear"):
        return False
    return any(
        slot == 0 and isinstance(u, Node) and _is_call(u, "DequantizeLinear") for u, slot in value.uses
    )


def _is_call(node: Node, op: str) -> bool:
    return node.op == op and not canonical_domain(node.domain)


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
        if any(v in found and passes(node, v) for v in node.reads()):
            found.update(v for v in results(node) if carries(v))
    return found


def path(graph: Graph, sources: Iterable[Value], target: Value) -> list[Node]:
    """Return the nodes by which a value depends on `sources` through floating-point values."""
    carrying, needed, found = reached(graph, sources), {target}, list[Node]()
    for node in reversed(graph.sorted_nodes()):
        if any(v in needed for v in results(node)) and any(v in carrying for v in node.reads()):
            needed.update(node.reads())
            found.append(node)
    return found


def _depends(node: Node, dependent: set[Value]) -> bool:
    """Return whether numbers of a node depend on numbers of some values, and not on their shapes alone."""
    if node.op in _STRUCTURAL or not any(v in dependent for v in node.reads()):
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
            needed.update(node.reads())
    ends = set(stopped)
    return [node for node in order if _ends(node, carrying, needed & dependent, ends)]


def _ends(node: Node, carrying: set[Value], on_path: set[Value], stopped: set[Node]) -> bool:
    """Return whether a node on a path reads a value that carries gradients and computes none that does."""
    outputs = [v for v in results(node) if v in on_path]
    if not outputs or not any(v in carrying and v in on_path for v in node.reads()):
        return False
    return node in stopped or not any(v in carrying for v in outputs)


def is_constant_between_jumps(node: Node, stopped: Iterable[Node]) -> bool:
    """Return whether a node at which gradients end has the derivative zero wherever it has one.

    Functions whose results are integers or truth values have, unless these encode real numbers, as those of
    QuantizeLinear and BitCast do. `stopped` are nodes that compute other results and pass no gradient on; an
    operator with subgraphs has the derivative zero if all nodes in them do at which gradients end.
    """
    ends = set(stopped)
    if any(_is_quantized(v) and not passes(node, v) for v in node.reads()):
        return False
    if node.graphs:
        inner = (n for graph in node.graphs for n in graph.all_nodes())
        return all(is_constant_between_jumps(n, ends) for n in inner if not n.graphs and _is_end(n, ends))
    if node in ends or node.op in _ENCODING or node.op.startswith(_ENCODING_PREFIXES):
        return False
    return all(_is_discrete(v.type) for v in results(node) if not carries(v))


def _is_end(node: Node, stopped: set[Node]) -> bool:
    return node in stopped or (
        any(carries(v) for v in node.reads()) and not any(carries(v) for v in results(node))
    )


def _is_discrete(type_: Type | None) -> bool:
    """Return whether a type is one of integers or truth values, or a container of them."""
    match type_:
        case TensorType():
            return type_.element.is_integer or type_.element is BOOL
        case SequenceType() | OptionalType():
            return _is_discrete(type_.item)
        case _:
            return False
