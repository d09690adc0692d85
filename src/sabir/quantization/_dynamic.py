"""Dynamic int8: each run determines the scales of activations, and products are those of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.elements import FLOAT, INT8
from sabir.quantization._codes import codes_of_channels
from sabir.quantization._editing import Edit
from sabir.quantization._tables import quantize_table
from sabir.quantization._weights import Table, Weighted, attribute, weighted_nodes
from sabir.rewriting import InsertionPoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Graph, Model, Node, Value
    from sabir.quantization._codes import Codes
    from sabir.quantization._exclusion import Exclusion
    from sabir.quantization._report import NodeReport
    from sabir.rewriting import DetachedBuilder
    from sabir.schema import Registry

OPSET = 13  # DequantizeLinear has scales along an axis, and DynamicQuantizeLinear exists
_MATRIX = 2  # axes
_BIAS = 2  # the input of Gemm and Conv


def quantize_dynamically(
    model: Model, excluded: Exclusion, registry: Registry
) -> tuple[Model, tuple[NodeReport, ...]]:
    """Change a model: products with constant weights become MatMulInteger and ConvInteger."""
    dynamic = _Dynamic(model, registry)
    reports = tuple(dynamic.reports(excluded))
    return dynamic.edit.finish(), reports


class _Dynamic:
    """One quantization; nodes that read the same activation share its DynamicQuantizeLinear."""

    def __init__(self, model: Model, registry: Registry) -> None:
        self.edit = Edit(model, registry)
        self._activations: dict[tuple[Value, Graph], tuple[Value, Value, Value]] = {}

    def reports(self, excluded: Exclusion) -> Iterator[NodeReport]:
        for found in list(weighted_nodes(self.edit.model, excluded)):
            if isinstance(found, Table):
                yield quantize_table(self.edit, found)
                continue
            if not isinstance(found, Weighted):
                yield found.report()
                continue
            reason = self._why_not(found)
            yield found.wide(reason) if reason else self._quantized(found)

    def _why_not(self, weighted: Weighted) -> str:
        """Return why a node stays wide, or nothing."""
        node, x = weighted.node, weighted.node.inputs[0]
        kind = None if x is None else self.edit.tensor_type(x)
        if kind is None or kind.element is not FLOAT or weighted.data.element is not FLOAT:
            return "DynamicQuantizeLinear takes float32 alone, and this is not known to be"
        if node.op != "Conv" and len(weighted.data.shape) != _MATRIX:
            return "its weights are several matrices"
        if node.op == "Gemm" and attribute(node, "transA", 0):
            return "it transposes its activation"
        if node.op == "Gemm" and (attribute(node, "alpha", 1.0), attribute(node, "beta", 1.0)) != (1.0, 1.0):
            return "it multiplies its operands by alpha or beta"
        return ""

    def _quantized(self, weighted: Weighted) -> NodeReport:
        codes = self.edit.codes(weighted, _channels)
        activation = self._activation(weighted.node)

        def build(b: DetachedBuilder) -> Value:
            if weighted.node.op == "Conv":
                return self._convolution(b, weighted, codes, activation)
            return self._product(b, weighted, codes, activation)

        report = weighted.quantized(INT8.name, codes.error)
        self.edit.replace(weighted.node, build)
        return report

    def _activation(self, node: Node) -> tuple[Value, Value, Value]:
        """Return the integers, the scale and the zero point of the activation of a node."""
        x, graph = node.inputs[0], node.graph
        if x is None or graph is None:
            raise ValueError(f"{node!r} has no activation, or is in no graph")
        found = self._activations.get((x, graph))
        if found is None:
            b = self.edit.rewriter.builder(graph)
            found = b.op("DynamicQuantizeLinear", x, outputs=3)
            self.edit.rewriter.place(b, InsertionPoint.before(node))
            self._activations[x, graph] = found
        return found

    def _product(
        self, b: DetachedBuilder, weighted: Weighted, codes: Codes, activation: tuple[Value, Value, Value]
    ) -> Value:
        x, scale, zero = activation
        node = weighted.node
        if weighted.channel == 0:
            integers = self.edit.stored(b, weighted, "_transposed", np.ascontiguousarray(codes.integers.T))
        else:
            integers = self.edit.stored(b, weighted, "_quantized", codes.integers)
        sums = b.Cast(b.MatMulInteger(x, integers, zero), to=FLOAT.number)
        scales = b.initializer(f"{weighted.weights.name}_scale", codes.scale)
        y = b.Mul(sums, b.Mul(scale, scales))
        bias = node.inputs[_BIAS] if node.op == "Gemm" and len(node.inputs) > _BIAS else None
        return y if bias is None else b.Add(y, bias)

    def _convolution(
        self, b: DetachedBuilder, weighted: Weighted, codes: Codes, activation: tuple[Value, Value, Value]
    ) -> Value:
        x, scale, zero = activation
        node = weighted.node
        integers = self.edit.stored(b, weighted, "_quantized", codes.integers)
        facts: dict[str, Any] = dict(node.attributes.items())  # those of ConvInteger are those of Conv
        sums = b.op("ConvInteger", x, integers, zero, **facts)
        per_channel = (-1, *(1,) * (len(weighted.data.shape) - 2))
        scales = b.initializer(f"{weighted.weights.name}_scale", codes.scale.reshape(per_channel))
        y = b.Mul(b.Cast(sums, to=FLOAT.number), b.Mul(scale, scales))
        bias = node.inputs[_BIAS] if len(node.inputs) > _BIAS else None
        return y if bias is None else b.Add(y, b.Reshape(bias, list(per_channel)))


def _channels(weighted: Weighted) -> Codes:
    return codes_of_channels(weighted.array(), weighted.channel, INT8)
