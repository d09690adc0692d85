"""The engine: gradients of a graph's values, from the results back to what they depend on.

It names no operator. For each node, from the last to the first, it calls the `gradient` of the operator with
the gradients of the outputs, and adds up what each value receives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sabir.base import ACCIDENTS, SchemaError, UnsupportedError, check_nodes, check_time, quote
from sabir.differentiation._activity import (
    blockers,
    carries,
    is_constant_between_jumps,
    passes,
    reached,
    results,
)
from sabir.differentiation._call import GradientBuilder
from sabir.differentiation._carrying import Residuals
from sabir.ir import Function
from sabir.rewriting import InsertionPoint
from sabir.schema import Call, Unconvertible, Version, as_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.differentiation._shaped import ShapedDetachedBuilder
    from sabir.ir import Graph, Node, Value
    from sabir.rewriting import Rewriter


@dataclass
class Job:
    """What the pullbacks of the graphs of one differentiation share."""

    rewriter: Rewriter
    residuals: Residuals = field(init=False)
    _made: int = 0

    def __post_init__(self) -> None:
        self.residuals = Residuals(self.rewriter)

    def is_random(self, node: Node, graph: Graph) -> bool:
        """Whether a node of a graph, or one inside it, may compute something else when it is run again."""
        scope = self.rewriter.scope_of(graph)
        inner = [n for g in node.graphs for n in g.all_nodes()]
        return any(
            isinstance(callee := scope.callee(n), Version) and callee.operator.random for n in (node, *inner)
        )

    def count(self, nodes: Sequence[Node]) -> None:
        """Count new nodes; raises LimitError where they are too many."""
        self._made += len(nodes)
        check_nodes(self._made)


class Pullback:
    """The gradients of the values of one graph with respect to some of them, or to what it captures.

    `active` are the values that may have a gradient: those on the way from the results to `wrt`. `stopped`
    are the nodes whose operator passed no gradient on to an active value, in subgraphs too, and `drawn` those
    that draw random numbers, which have the gradient zero.
    """

    def __init__(
        self,
        job: Job,
        graph: Graph,
        wrt: Sequence[Value],
        target: ShapedDetachedBuilder,
        *,
        cut: frozenset[Value] = frozenset(),
    ) -> None:
        """Take the graph, the values `wrt`, and the builder that receives the new nodes.

        Gradients end at the values of `cut`, as if no node computed them.
        """
        self.job, self.rewriter, self.graph = job, job.rewriter, graph
        self._wrt, self._target, self._cut = wrt, target, cut
        self.active = reached(graph, wrt)
        self.stopped: list[Node] = []
        self.drawn: list[Node] = []
        self._parts: dict[Value, list[Value]] = {}

    def inside(self, body: Graph, wrt: Sequence[Value], target: ShapedDetachedBuilder) -> Pullback:
        """Return the pullback of a subgraph of one of the nodes."""
        inner = Pullback(self.job, body, wrt, target)
        inner.stopped, inner.drawn = self.stopped, self.drawn
        return inner

    def run(self, seeds: Iterable[tuple[Value | None, Value | None]]) -> list[Value | None]:
        """Return the gradients with respect to `wrt`, None where none arrives.

        `seeds` are values of the graph, each with its gradient; pairs with None are skipped. Raises
        UnsupportedError for an operator without a gradient on the way.
        """
        for value, gradient in seeds:
            if value is not None and gradient is not None:
                self._contribute(value, gradient)
        for node in reversed(self.graph.sorted_nodes()):
            check_time()
            self._pull(node)
        return [self._total(v) for v in self._wrt]

    def zeros(self, source: Value, target: Value, *, strict: bool) -> Value:
        """Return the gradient where none arrives; raises UnsupportedError where it may not be zero.

        With `strict` it raises wherever `target` depends on numbers of `source`.
        """
        ends = blockers(self.graph, source, target, [*self.stopped, *self.drawn])
        if not strict:
            others = (node for node in ends if node not in self.drawn)
            ends = [node for node in others if not is_constant_between_jumps(node, self.stopped)]
        if not ends:
            return self._target.zeros(source)
        names = ", ".join(map(repr, ends))
        raise UnsupportedError(
            f"no gradient of {quote(target.name)} reaches {quote(source.name)}: it ends at {names}"
        )

    def _contribute(self, value: Value, gradient: Value) -> None:
        if value in self.active:
            self._parts.setdefault(value, []).append(gradient)

    def _total(self, value: Value) -> Value | None:
        """Return the gradient of a value: the sum of its contributions, each counted once."""
        parts = self._parts.get(value)
        if not parts:
            return None
        if len(parts) > 1:
            parts[:] = [self._target.total(*parts)]
        return parts[0]

    def _pull(self, node: Node) -> None:
        """Add the contributions of a node to the gradients of what it reads."""
        if not any(v in self.active for v in node.reads()):
            return
        dys = tuple(None if v is None or v in self._cut else self._total(v) for v in node.outputs)
        if all(dy is None for dy in dys):
            return
        version = self._version(node)
        if version.find("gradient") is None and version.operator.random:
            self.drawn.append(node)
        elif version.find("gradient") is None:
            self._pull_body(node, version)
        else:
            self._call(node, version, dys)

    def _call(self, node: Node, version: Version, dys: tuple[Value | None, ...]) -> None:
        """Add the contributions that the gradient of the operator returns."""
        operands = tuple(node.inputs)
        binding = version.binding("gradient")
        g = self.rewriter.builder(self.graph, partial(GradientBuilder, self, node, dys))
        call = Call(tuple(v is not None for v in node.outputs), version.since)
        arguments = binding.arguments(node.attributes)
        try:
            found = as_results(binding((g, *operands), arguments, call))
        except Unconvertible as error:
            raise UnsupportedError(f"{_where(node)}: {error}") from error
        except ACCIDENTS as error:  # a model whose types lie leads a gradient astray
            raise UnsupportedError(f"{_where(node)}: its gradient fails: {error!r}") from error
        if len(found) < len(operands):
            raise SchemaError(
                f"the gradient of {version} returns {len(found)} values for {len(operands)} inputs"
            )
        self.job.count(self.rewriter.place(g, InsertionPoint.end(self._target.graph)))
        pairs = zip(operands, found, strict=False)
        contributions = [*((v, d) for v, d in pairs if v is None or passes(node, v)), *g.added]
        for value, gradient in contributions:
            if value is not None and gradient is not None:
                self._contribute(value, gradient)
        if not any(v in self.active and d is not None for v, d in contributions):
            self.stopped.append(node)

    def _pull_body(self, node: Node, version: Version) -> None:
        """Replace a node by the body of its operator, and pull through that."""
        try:
            nodes = self.rewriter.expand(node, version, "body")
        except Unconvertible as error:
            raise UnsupportedError(
                f"{_where(node)}: {version} has no gradient, and cannot be written out: {error}"
            ) from error
        self.job.count(nodes)
        for new in nodes:
            if any(v in self.active and passes(new, v) for v in new.reads()):
                self.active.update(v for v in results(new) if carries(v))
        for new in reversed(nodes):
            self._pull(new)

    def _version(self, node: Node) -> Version:
        """Return the operator version that a node calls; raises UnsupportedError if none can be passed."""
        callee = self.rewriter.scope_of(self.graph).callee(node)
        if isinstance(callee, Function):
            raise UnsupportedError(
                f"{_where(node)}: it calls a function of the model; inline the model first"
            )
        reason = callee.why_absent("gradient")
        known = callee.find("gradient") is not None or callee.operator.random
        if not known and (reason or callee.find("body") is None):
            raise UnsupportedError(
                f"{_where(node)}: {callee} has no gradient{f': {reason}' if reason else ''}"
            )
        return callee


def _where(node: Node) -> str:
    names = ", ".join(quote(v.name) for v in results(node))
    return f"a gradient must pass {node!r}, which computes {names}"
