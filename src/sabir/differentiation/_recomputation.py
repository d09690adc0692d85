"""Recomputation: nodes of the forward part are copied into the backward part; their results are not kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sabir.base import NotFoundError, SchemaError, check_time, quote
from sabir.differentiation._activity import results
from sabir.differentiation._containers import element_of
from sabir.differentiation._copying import copied
from sabir.differentiation._shaped import ShapedDetachedBuilder
from sabir.inference import without_contents
from sabir.ir import Graph, Node, TensorType
from sabir.rewriting import InsertionPoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from sabir.differentiation._pullback import Job
    from sabir.ir import Value

    Key: TypeAlias = tuple[int, tuple[str | None, ...]]


def segments_of(graph: Graph, patterns: Sequence[str]) -> list[list[Node]]:
    """Return the nodes whose names match, in segments: of equal text in the groups of one pattern.

    Raises SchemaError for an invalid pattern, NotFoundError for one that no name matches.
    """
    found: dict[Key, list[Node]] = {}
    taken: set[Node] = set()
    order = graph.sorted_nodes()
    for index, pattern in enumerate(patterns):
        try:
            matches = re.compile(pattern).fullmatch
        except (re.error, RecursionError) as error:
            raise SchemaError(f"`recompute` has the pattern {quote(pattern)}: {error}") from error
        matched = [(node, m) for node in order if node.name and (m := matches(node.name)) is not None]
        if not matched:
            raise NotFoundError(f"no node has a name that matches {quote(pattern)} of `recompute`")
        for node, match in matched:
            if node not in taken:
                taken.add(node)
                found.setdefault((index, match.groups()), []).append(node)
    return list(found.values())


def recompute(
    job: Job, graph: Graph, backward: Graph, segments: Iterable[Sequence[Node]], seed: Value
) -> None:
    """Let the nodes of `backward` read copies of what the nodes of each segment compute.

    A value that other nodes of the forward part read, or that is drawn at random, is kept.
    """
    for segment in segments:
        check_time()
        _Segment(job, graph, backward, segment).copy(seed)


class _Segment:
    """Nodes of the forward part that are copied to right before the first node that reads their results.

    A copy reads its operand less a zero that depends on a gradient, so that no optimizer merges it with the
    node that it is a copy of, or computes it early.
    """

    def __init__(self, job: Job, graph: Graph, backward: Graph, nodes: Sequence[Node]) -> None:
        self._job, self._graph, self._backward = job, graph, backward
        self._nodes = {n for n in nodes if not job.is_random(n, graph)}
        self._inside = set(backward.scopes())

    def copy(self, seed: Value) -> None:
        """Place the copies, and let the backward part read them; `seed` is the gradient before all others."""
        needed = [v for v in self._backward.captures() if self._is_replaced(v)]
        nodes = self._needed_nodes(needed)
        if not nodes:
            return
        first, before = self._first_reader({*needed}, seed)
        b = self._job.rewriter.builder(self._graph, ShapedDetachedBuilder)
        copies = self._delayed(b, nodes, before)
        before_first = InsertionPoint.before(first)
        b.place(before_first)
        for node in nodes:
            self._place(node, before_first, copies, {*needed})
        self._job.count(nodes)

    def _place(
        self, node: Node, point: InsertionPoint, copies: dict[Value, Value | None], needed: set[Value]
    ) -> None:
        copy = point.insert(copied(node, self._job.rewriter.names, copies))
        for old, new in zip(node.outputs, copy.outputs, strict=True):
            if old is None or new is None:
                continue
            new.type = old.type and without_contents(old.type)
            if old in needed:
                self._redirect(old, new)
            if not self._is_replaced(old):
                copies.pop(old)  # it is kept, and read by the copies too

    def _redirect(self, old: Value, new: Value) -> None:
        for user, slot in list(old.uses):
            if isinstance(user, Graph):
                if user in self._inside:
                    user.outputs[slot] = new
            elif user.graph in self._inside:
                user.inputs[slot] = new

    def _first_reader(self, needed: set[Value], seed: Value) -> tuple[Node, Value]:
        """Return the first node of the backward part that reads a result, and the last gradient before it."""
        before = seed
        for node in self._backward:
            if any(v in needed for v in node.reads()):
                return node, before
            for value in results(node):
                if isinstance(value.type, TensorType) and value.type.element.is_float:
                    before = value
        raise SchemaError("no node of the backward part reads a value that it captures")

    def _needed_nodes(self, needed: Iterable[Value]) -> list[Node]:
        """Return the nodes that compute values from what is kept, in topological order."""
        again, pending = set[Node](), list(needed)
        while pending:
            node = pending.pop().node
            if node is not None and node not in again:
                again.add(node)
                pending += [v for v in node.reads() if self._is_replaced(v)]
        return [n for n in self._graph.sorted_nodes() if n in again] if again else []

    def _is_replaced(self, value: Value) -> bool:
        """Whether a value is computed here, and read by no other node of the forward part."""
        return value.node in self._nodes and all(self._is_local(u.user) for u in value.uses)

    def _is_local(self, user: Node | Graph) -> bool:
        """Whether a reader belongs to the backward part or to a node of the segment."""
        graph = user if isinstance(user, Graph) else user.graph
        while graph is not None and graph not in self._inside:
            if graph is self._graph:
                return user in self._nodes
            if graph.parent is None:
                return False
            user, graph = graph.parent, graph.parent.graph
        return graph is not None

    def _delayed(
        self, b: ShapedDetachedBuilder, nodes: Iterable[Node], gradient: Value
    ) -> dict[Value, Value | None]:
        """Return what the copies read in the place of operands that are kept, one for each first node."""
        zero = b.ReduceSum(b.Slice(b.Reshape(gradient, [-1]), [0], [0]), keepdims=0)
        found: dict[Value, Value | None] = {}
        for node in nodes:
            tensors = [v for v in node.reads() if isinstance(v.type, TensorType) and v.type.element.is_float]
            if any(self._is_replaced(v) or v in found for v in tensors) or not tensors:
                continue
            value = next((v for v in tensors if v.constant is None), tensors[0])
            same = value.type == zero.type or element_of(value) == element_of(zero)
            found[value] = b.Sub(value, zero if same else b.CastLike(zero, value))
        return found
