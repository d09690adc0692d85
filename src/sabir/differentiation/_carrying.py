"""Residuals: values of a subgraph that its gradient reads, carried out as further outputs of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.differentiation._containers import element_of, empty, item_element
from sabir.differentiation._shaped import ShapedDetachedBuilder
from sabir.ir import SequenceType, TensorType, known_equal
from sabir.opsets.families.sequences.sequence_gradients import extended
from sabir.rewriting import InsertionPoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Graph, Node, Shape, Value
    from sabir.rewriting import Rewriter

_STATES = 2  # the first state of Loop is its input of this number


class Residuals:
    """Carries residuals out of subgraphs, and remembers those whose shape may differ from run to run.

    A subgraph that is not run outputs another tensor in the place of a residual. In the main graph that is an
    empty one. Further inside it has the shape of the residual where that can be computed, because an
    iteration around the node may have to stack it.
    """

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self._varying: set[Value] = set()

    def carry(
        self, node: Node, bodies: Sequence[Graph], values: Sequence[Value], first: int, **attributes: Any
    ) -> tuple[Value, ...]:
        """Make values of a node's subgraphs its outputs from number `first` on; see `Gradient.carry`."""
        if not values:
            return ()
        for value in values:
            for body in bodies:
                body.outputs.append(
                    self._copy(value, body) if value.home is body else self._absent(value, body, node)
                )
        node.set(**attributes)
        outputs = self._rewriter.name_outputs(node, range(first, first + len(values)))
        self._varying.update(o for o, v in zip(outputs, values, strict=True) if v in self._varying)
        return outputs

    def is_steady(self, value: Value) -> bool:
        """Whether a value is a tensor of the same shape in all runs, as far as known; see `Gradient`."""
        return isinstance(value.type, TensorType) and value not in self._varying

    def collect(self, node: Node, body: Graph, values: Sequence[Value], states: int) -> tuple[Value, ...]:
        """Keep values of the body of a loop in sequences; see `Gradient.collect`."""
        if not values:
            return ()
        point = InsertionPoint.before(node)
        outside = self._rewriter.builder(point.graph, ShapedDetachedBuilder)
        inside = self._rewriter.builder(body, ShapedDetachedBuilder)
        kinds = [SequenceType(TensorType(item_element(value))) for value in values]
        begins = [empty(outside, kind) for kind in kinds]
        self._rewriter.place(outside, point)
        for index, (value, kind) in enumerate(zip(values, kinds, strict=True), start=1 + states):
            before = body.add_input(self._rewriter.names.fresh("kept"), kind)
            body.outputs.insert(index, _kept(inside, before, value))
        self._rewriter.place(inside, InsertionPoint.end(body))
        first = _STATES + states
        node.inputs = [*node.inputs, *[None] * (first - len(node.inputs)), *begins]
        outputs = [*node.outputs, *[None] * (states - len(node.outputs))]
        node.outputs = [*outputs[:states], *[None] * len(values), *outputs[states:]]
        return self._rewriter.name_outputs(node, range(states, states + len(values)))

    def lengths(self, body: Graph, sequences: Sequence[Value]) -> tuple[Value, ...]:
        """Return new values of a subgraph: the lengths of sequences; see `Gradient.lengths`."""
        b = self._rewriter.builder(body, ShapedDetachedBuilder)
        found = tuple(b.SequenceLength(s) for s in sequences)
        b.place(InsertionPoint.end(body))
        return found

    def _copy(self, value: Value, body: Graph) -> Value:
        b = self._rewriter.builder(body, ShapedDetachedBuilder)
        copy = b.Identity(value)
        b.place(InsertionPoint.end(body))
        return copy

    def _absent(self, value: Value, body: Graph, node: Node) -> Value:
        """Return the tensor that a subgraph outputs in the place of a value of another subgraph."""
        b = self._rewriter.builder(body, ShapedDetachedBuilder)
        if not isinstance(value.type, TensorType):
            nothing = empty(b, value.type)
            b.place(InsertionPoint.end(body))
            return nothing
        dtype, shape = element_of(value).dtype, b.shape(value)
        filler = "" if dtype == np.object_ else 0
        nested = node.graph is not None and node.graph.parent is not None
        sizes = _sizes(b, shape, node.captures()) if nested and shape else None
        if sizes is not None:
            result = b.Expand(b.Constant(value=np.array(filler, dtype)), sizes)
        else:
            result = b.Constant(value=np.full((0,) * (1 if shape is None else len(shape)), filler, dtype))
            if shape != ():
                self._varying.add(value)
        b.place(InsertionPoint.end(body))
        return result


def _kept(b: ShapedDetachedBuilder, before: Value, value: Value) -> Value:
    """Return a sequence with a tensor, or with all items of another sequence, at its end."""
    if isinstance(value.type, SequenceType):
        return extended(b, before, value, None, b.SequenceLength(value))
    return b.SequenceInsert(before, value)


def _sizes(b: ShapedDetachedBuilder, shape: Shape, visible: Sequence[Value]) -> Value | None:
    """Return a shape as a value; None where no visible value has one of its symbols as a dimension."""
    places = [(v, axis, dim) for v in dict.fromkeys(visible) for axis, dim in enumerate(b.shape(v) or ())]
    found = [next(((v, a) for v, a, d in places if known_equal(d, size)), None) for size in shape]
    if any(place is None and not isinstance(size, int) for place, size in zip(found, shape, strict=True)):
        return None
    parts = [
        b.Constant(value=np.array([size], np.int64))
        if place is None or isinstance(size, int)
        else b.Shape(place[0], start=place[1], end=place[1] + 1)
        for place, size in zip(found, shape, strict=True)
    ]
    return b.Concat(*parts, axis=0)
