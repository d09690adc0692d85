"""The builder with which the gradient of one call is written."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import SchemaError, UnsupportedError, quote
from sabir.differentiation._activity import reached
from sabir.differentiation._body import BackwardBodyBuilder
from sabir.differentiation._shaped import ShapedDetachedBuilder, element_of
from sabir.inference import without_contents
from sabir.ir import Attribute, Node, TensorType, Value
from sabir.opsets.typing import Gradient

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.differentiation._pullback import Pullback
    from sabir.ir import Graph


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
        for value in values:
            if not isinstance(value.type, TensorType):
                raise UnsupportedError(
                    f"the gradient of {self._node!r} needs {quote(value.name)} of its subgraph, and only a"
                    f" tensor can become an output for this; it is {value.type}"
                )
            for body in bodies:
                body.outputs.append(
                    self._copy(body, value) if value.home is body else self._nothing(body, value)
                )
        if not values:
            return ()
        self._node.set(**attributes)
        return self._rewriter.name_outputs(self._node, range(first, first + len(values)))

    def _copy(self, body: Graph, value: Value) -> Value:
        """Append a copy of a value to the subgraph that defines it."""
        copy = Value(self._fresh("residual"), value.type and without_contents(value.type))
        return body.append(Node("Identity", [value], [copy])).output

    def _nothing(self, body: Graph, like: Value) -> Value:
        """Append an empty tensor of the element type and rank of a value of another subgraph."""
        dtype, shape = element_of(like).dtype, self.shape(like)
        rank = 1 if shape is None else len(shape)
        content = np.full((0,) * rank, "" if dtype == np.object_ else 0, dtype)
        node = Node(
            "Constant", (), [Value(self._fresh("nothing"))], {"value": Attribute.of("value", content)}
        )
        return body.append(node).output
