"""Rules applied to the nodes of a model until none applies."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from sabir.base import SchemaError, check_nodes, check_time
from sabir.ir import Graph, Node
from sabir.rewriting._point import enclosing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sabir.ir import Model

Rule: TypeAlias = "Callable[[Node], Sequence[Node] | None]"
MOST_STEPS = 100  # from a node to what replaces what replaces it; rules that undo one another never end


def apply_rules(model: Model, *rules: Rule) -> bool:
    """Apply rules to the nodes of a model until none applies; return whether any did.

    A rule takes a node and returns the new nodes where it changed the model, None where it does not apply.
    The nodes of each graph come in topological order. After a change the new nodes, those inside them and the
    readers of their outputs are visited again, and the node itself where it is still in the model.

    Raises SchemaError where replacements are replaced without end, and LimitError past the limits on nodes
    and time.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> rewriter = Rewriter(model)
    >>> def to_abs(node):
    ...     if node.op == 'Relu':
    ...         return rewriter.replace(node, lambda b: b.Abs(node.inputs[0]))
    >>> apply_rules(model, to_abs), model.graph[0].op
    (True, 'Abs')
    """
    roots = set(model.graphs())
    pending = deque((node, 0) for root in model.graphs() for node in _ordered(root))
    count, waiting, changed = len(pending), {node for node, _ in pending}, False
    while pending:
        check_time()
        node, steps = pending.popleft()
        waiting.discard(node)
        if node.graph not in roots and not _is_in(node, roots):
            continue
        nodes = next((nodes for rule in rules if (nodes := rule(node)) is not None), None)
        if nodes is None:
            continue
        changed, count = True, count + len(nodes)
        check_nodes(count)
        if steps == MOST_STEPS:
            raise SchemaError(f"the rules that replaced {node!r} have replaced {steps} others before it")
        again = [n for n in dict.fromkeys((*_affected(nodes), node)) if n not in waiting]
        waiting.update(again)
        pending.extendleft((n, steps + 1) for n in reversed(again))
    return changed


def _ordered(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph in topological order, each before those inside its subgraphs.

    Nodes that read one another in a cycle come in the graph's own order.
    """
    try:
        order = graph.sorted_nodes()
    except SchemaError:
        order = tuple(graph)
    for node in order:
        yield node
        for inner in node.graphs:
            yield from _ordered(inner)


def _affected(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for inner in node.graphs:
            yield from inner.all_nodes()
    for node in nodes:
        for value in node.outputs:
            yield from (u.user for u in (value.uses if value is not None else ()) if isinstance(u.user, Node))


def _is_in(node: Node, roots: set[Graph]) -> bool:
    """Return whether a node is still in the model: not erased, and in no graph of an erased node."""
    return any(graph in roots for graph in enclosing(node.graph))
