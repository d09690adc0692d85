"""Mixtures of experts in graphs: every expert is computed for every token, and most have the weight 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.elements import FLOAT
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.products.experts import CUBIC, INTERLEAVED, SLOPE
from sabir.opsets.families.shapes.extents import unsqueezed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value
    from sabir.opsets.families.products.experts import Mixture


class LayerValue(NamedTuple):
    """One layer of all experts: weights (experts, outputs, inputs) and bias (experts, outputs), in float."""

    weights: Value
    bias: Value | None


def mixed_value(
    b: Builder, mixture: Mixture, x: Value, logits: Value, layers: Sequence[LayerValue | None],
    mixing: Value | None = None,
) -> Value:  # fmt: skip
    """Emit `experts.mixed`; the rank of `x` may be unknown."""
    graph = _Graph(b, mixture, Numbers(b, FLOAT))
    first, second, third = layers
    if first is None or second is None:
        raise TypeError("experts have two layers")
    flat = b.Flatten(typed(b, x, FLOAT), axis=-1)
    linear = None if third is None else graph.layer(flat, third)
    outputs = graph.layer(graph.activated(graph.layer(flat, first), linear), second)
    weights = graph.weights(typed(b, logits, FLOAT), mixing)
    total = b.ReduceSum(b.Mul(outputs, weights), _ints(b, 0), keepdims=0)
    return typed(b, b.Reshape(total, b.Shape(x), allowzero=1), element_of(x))


def _ints(b: Builder, *numbers: int) -> Value:
    return b.initializer("ints", np.array(numbers, np.int64))


class _Graph(NamedTuple):
    b: Builder
    mixture: Mixture
    numbers: Numbers

    def layer(self, x: Value, layer: LayerValue) -> Value:
        """Emit a layer of all experts, (experts, tokens, outputs)."""
        b = self.b
        y = b.MatMul(x, b.Transpose(layer.weights, perm=[0, 2, 1]))
        return y if layer.bias is None else b.Add(y, unsqueezed(b, typed(b, layer.bias, FLOAT), [1]))

    def weights(self, logits: Value, mixing: Value | None) -> Value:
        """Emit the weights, (experts, tokens, 1)."""
        b = self.b
        _, chosen = b.TopK(logits, _ints(b, self.mixture.k), axis=-1, outputs=2)
        source = b.Softmax(logits, axis=-1) if mixing is None else typed(b, mixing, FLOAT)
        taken = b.GatherElements(source, chosen, axis=1)
        if self.mixture.normalized:
            taken = b.Div(taken, b.ReduceSum(taken, _ints(b, 1), keepdims=1))
        nothing = b.ConstantOfShape(b.Shape(logits), value=np.zeros(1, np.float32))
        weights = b.ScatterElements(nothing, chosen, taken, axis=1)
        return unsqueezed(b, b.Transpose(weights, perm=[1, 0]), [2])

    def activated(self, x: Value, linear: Value | None) -> Value:
        """Emit the activation of the first product; `linear` is that of FC3."""
        b, numbers = self.b, self.numbers
        match self.mixture.activation:
            case "relu":
                return b.Relu(x)
            case "gelu":
                cubic = numbers.op("Mul", b.Mul(x, b.Mul(x, x)), CUBIC)
                step = b.Tanh(numbers.op("Mul", b.Add(x, cubic), SLOPE))
                return b.Mul(numbers.op("Mul", x, 0.5), numbers.op("Add", step, 1.0))
            case "silu":
                return b.Mul(x, b.Sigmoid(x))
            case "swiglu":
                return self._swiglu(x, linear)
            case _:
                return x

    def _swiglu(self, x: Value, linear: Value | None) -> Value:
        b, mixture, numbers = self.b, self.mixture, self.numbers
        gate = x
        if linear is None and mixture.fusion == INTERLEAVED:
            end, last = np.iinfo(np.int64).max, _ints(b, -1)
            gate, linear = (
                b.Slice(x, _ints(b, start), _ints(b, end), last, _ints(b, 2)) for start in range(2)
            )
        elif linear is None:
            gate, linear = b.Split(x, num_outputs=2, outputs=2, axis=-1)
        limit = mixture.limit
        if limit is not None:
            gate = gate if mixture.late else b.Min(gate, numbers(limit))
            linear = numbers.clipped(linear, -limit, limit)
        gate = b.Mul(gate, b.Sigmoid(numbers.op("Mul", gate, mixture.alpha)))
        if limit is not None and mixture.late:
            gate = b.Min(gate, numbers(limit))
        return b.Mul(gate, numbers.op("Add", linear, mixture.beta))
