"""The builder with which the gradient of one call is written."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sabir.base import SchemaError
from sabir.differentiation._activity import reached
from sabir.differentiation._body import BackwardBodyBuilder
from sabir.differentiation._shaped import ShapedDetachedBuilder
from sabir.opsets.typing import Gradient

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.differentiation._pullback import Pullback
    from sabir.ir import Graph, Node, Value


class GradientBuilder(ShapedDetachedBuilder, Gradient):
    """The builder of the gradient of one node; `Gradient` describes what rooms call."""

    def __init__(self, pullback: Pullback, node: Node, dys: tuple[Value | None, ...], **options: Any) -> None:
        """Take the node, the gradients of its outputs, and the options of `Builder`."""
        super().__init__(**options)
        self._pullback, self._node, self._dys = pullback, node, dys
        self._rewriter = pullback.rewriter
        self.added: list[tuple[Value, Value]] = []  # contributions to captured values

    @property
    def dy(self) -> Value:
        """The gradient of the first output; raises SchemaError where only other outputs have one."""
        dy = self._dys[0]
        if dy is None:
            raise SchemaError(
                f"the first output of {self._node!r} has no gradient, and others may; read `dys`"
            )
        return dy

    @property
    def dys(self) -> tuple[Value | None, ...]:
        """The gradient of each output of the call, None where nothing depends on the output."""
        return self._dys

    def y(self, index: int = 0) -> Value:
        """Return an output of the call; one that the node leaves out is named, so that it is computed."""
        return self._rewriter.name_output(self._node, index)

    def ys(self, *indices: int) -> tuple[Value, ...]:
        """Return several outputs of the call, as `y` does; those that go together are named together."""
        return self._rewriter.name_outputs(self._node, indices)

    def wants(self, index: int) -> bool:
        """Whether the gradient of an input of the call is used."""
        return index < len(self._node.inputs) and self._node.inputs[index] in self._pullback.active

    def captured(self, *bodies: Graph) -> tuple[Value, ...]:
        """Return the values that subgraphs capture and whose gradients are used."""
        captures = dict.fromkeys(v for body in bodies for v in body.captures())
        return tuple(v for v in captures if v in self._pullback.active)

    def add(self, value: Value, gradient: Value) -> None:
        """Contribute to the gradient of a captured value."""
        self.added.append((value, gradient))

    def reached(self, body: Graph, sources: Iterable[Value]) -> set[Value]:
        """Return the values of a subgraph through which gradients pass to `sources`."""
        return reached(body, sources)

    def backward(self, body: Graph) -> BackwardBodyBuilder:
        """Return a builder of the subgraph that computes gradients of the values of `body`."""
        make = partial(BackwardBodyBuilder, self._pullback, body)
        return self._rewriter.builder(self._pullback.graph, make)

    def carry(
        self, bodies: Sequence[Graph], values: Sequence[Value], first: int, **attributes: Any
    ) -> tuple[Value, ...]:
        """Make values of the call's subgraphs further outputs of the call, and return these outputs."""
        return self._pullback.job.residuals.carry(self._node, bodies, values, first, **attributes)

    def collect(self, body: Graph, values: Sequence[Value], states: int) -> tuple[Value, ...]:
        """Keep values of the body of a Loop in sequences, and return these outputs of the call."""
        return self._pullback.job.residuals.collect(self._node, body, values, states)

    def lengths(self, body: Graph, sequences: Sequence[Value]) -> tuple[Value, ...]:
        """Return new values of a subgraph: the lengths of sequences."""
        return self._pullback.job.residuals.lengths(body, sequences)

    def is_steady(self, value: Value) -> bool:
        """Whether a value of a subgraph is a tensor of one shape in all its runs, as far as known."""
        return self._pullback.job.residuals.is_steady(value)
