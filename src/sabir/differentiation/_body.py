"""The builder of the subgraph that computes gradients of the values of another subgraph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.differentiation._shaped import ShapedDetachedBuilder
from sabir.inference import without_contents
from sabir.ir import Graph, Node, Value, canonical_domain, clone_node
from sabir.opsets.typing import BackwardBody
from sabir.rewrite import InsertionPoint, remove_unread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.differentiation._pullback import Pullback


class BackwardBodyBuilder(ShapedDetachedBuilder, BackwardBody):
    """The builder of a backward body; `BackwardBody` describes what rooms call."""

    def __init__(self, pullback: Pullback, body: Graph, **options: Any) -> None:
        """Take the pullback of the graph around the forward body, that body, and the options of `Builder`."""
        super().__init__(**options)
        self.graph.name = f"{body.name}_backward"
        self._pullback, self._body = pullback, body

    def like(self, name: str, value: Value) -> Value:
        """Add an input of the type of a value."""
        return self.graph.add_input(self._fresh(name), value.type and without_contents(value.type))

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
            copy = self._constant(value)
            if copy is not None:
                self.redirect(value, copy)
            elif all(_is_call(node, "Shape") for node in self._readers(value)):
                self._move_shapes(value)

    def _constant(self, value: Value) -> Value | None:
        """Return a copy of a constant of the forward body, None for any other value."""
        if value.constant is not None and not value.is_input:
            return self.graph.add_initializer(self._fresh(value.name), value.constant)
        if value.node is None or not _is_call(value.node, "Constant"):
            return None
        return self._clone(value.node, InsertionPoint.start(self.graph))

    def _clone(self, node: Node, point: InsertionPoint) -> Value:
        copy = point.insert(clone_node(node)).output
        copy.name = self._fresh(copy.name)
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
