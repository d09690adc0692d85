"""The builder of the subgraph that computes gradients of the values of another subgraph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import UnsupportedError, quote
from sabir.differentiation._copying import copied
from sabir.differentiation._shaped import ShapedDetachedBuilder
from sabir.inference import without_contents
from sabir.ir import Graph, Node, Value, canonical_domain
from sabir.opsets.typing import BackwardBody
from sabir.rewriting import InsertionPoint, remove_unread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sabir.differentiation._pullback import Pullback
    from sabir.opsets.typing import ShapedBuilder


class BackwardBodyBuilder(ShapedDetachedBuilder, BackwardBody):
    """The builder of a backward body; `BackwardBody` describes what rooms call."""

    def __init__(self, pullback: Pullback, body: Graph, **options: Any) -> None:
        """Take the pullback of the graph around the forward body, that body, and the options of `Builder`."""
        super().__init__(**options)
        self.graph.name = f"{body.name}_backward"
        self._pullback, self._body = pullback, body

    def like(self, name: str, value: Value) -> Value:
        """Add an input of the type of a value."""
        return self.graph.add_input(self._names.fresh(name), value.type and without_contents(value.type))

    def gradients(
        self, seeds: Iterable[tuple[Value | None, Value | None]], wrt: Sequence[Value]
    ) -> list[Value | None]:
        """Return the gradients of values that the forward body reads or takes as inputs, None where zero."""
        return self._pullback.inside(self._body, wrt, self).run(seeds)

    def close(self, outputs: Iterable[Value]) -> None:
        """Set the outputs, erase what nothing reads, and copy the constants that are read."""
        # an output that is a value of another graph, an input or another output would be no valid one
        self.graph.outputs = [self.op("Identity", v) for v in outputs]
        remove_unread(self.graph)
        for value in self.residuals():
            copy = self._copy_constant(value)
            if copy is not None:
                self.redirect(value, copy)
            elif all(_is_call(node, "Shape") for node in self._readers(value)):
                self._move_shapes(value)

    def _copy_constant(self, value: Value) -> Value | None:
        """Return a copy of a constant of the forward body, None for any other value."""
        if value.constant is not None and not value.is_input:
            return self.graph.add_initializer(self._names.fresh(value.name), value.constant)
        if value.node is None or not _is_call(value.node, "Constant"):
            return None
        return self._clone(value.node, InsertionPoint.start(self.graph))

    def _clone(self, node: Node, point: InsertionPoint) -> Value:
        copy = point.insert(copied(node, self._names)).output
        copy.type = copy.type and without_contents(copy.type)
        return copy

    def _readers(self, value: Value) -> list[Node | Graph]:
        inside = set(self.graph.scopes())
        return [
            u.user for u in value.uses if (u.user if isinstance(u.user, Graph) else u.user.graph) in inside
        ]

    def _move_shapes(self, value: Value) -> None:
        """Compute the shape of a value that is read for nothing else in the forward body: it is small."""
        for node in self._readers(value):
            if isinstance(node, Graph) or node.graph is None:
                continue
            node.output.replace_with(self._clone(node, InsertionPoint.end(self._body)))
            node.graph.erase(node)

    def recompute(self, stays: Callable[[Value], bool]) -> None:
        """Compute the residuals for which `stays` is false again, from others."""
        again: set[Node] = set()
        pending = [v for v in self.residuals() if not stays(v)]
        while pending:
            value = pending.pop()
            if value.node is None or not self._is_repeatable(value.node):
                raise UnsupportedError(
                    f"a gradient needs {quote(value.name)} of every step of {self._body.name!r}, and it can "
                    "neither be kept nor computed again"
                )
            if value.node not in again:
                again.add(value.node)
                pending += [v for v in value.node.reads() if v.home is self._body and not stays(v)]
        self._repeat([node for node in self._body.sorted_nodes() if node in again], stays)

    def _repeat(self, nodes: Sequence[Node], stays: Callable[[Value], bool]) -> None:
        """Copy nodes of the forward body to the start; the copies are read instead of what does not stay."""
        point, copies = InsertionPoint.start(self.graph), dict[Value, Value | None]()
        for node in nodes:
            copy = point.insert(copied(node, self._names, copies))
            for old, new in zip(node.outputs, copy.outputs, strict=True):
                if old is None or new is None:
                    continue
                new.type = old.type and without_contents(old.type)
                if stays(old):
                    copies.pop(old)  # the nodes that are copied next read what is kept
                else:
                    self.redirect(old, new)

    def _is_repeatable(self, node: Node) -> bool:
        return not self._pullback.job.is_random(node, self._body)

    def first(self, build: Callable[[ShapedBuilder], Sequence[Value]]) -> Sequence[Value]:
        """Build values before all nodes of this body; they read its inputs and values around it."""
        rewriter = self._pullback.rewriter
        b = rewriter.builder(self._pullback.graph, ShapedDetachedBuilder)
        values = build(b)
        b.place(InsertionPoint.start(self.graph))
        return values

    def residuals(self) -> list[Value]:
        """Return the values of the forward body that are read, in reading order."""
        return [v for v in self.graph.captures() if v.home is self._body]

    def redirect(self, residual: Value, value: Value) -> None:
        """Let the nodes that read a residual read another value instead."""
        inside = set(self.graph.scopes())
        for user, slot in residual.uses:
            if isinstance(user, Graph):
                if user in inside:
                    user.outputs[slot] = value
            elif user.graph in inside:
                user.inputs[slot] = value


def _is_call(node: Node | Graph, op: str) -> bool:
    """Return whether a node calls an operator of the default domain."""
    return isinstance(node, Node) and node.op == op and not canonical_domain(node.domain)
