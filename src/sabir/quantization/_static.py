"""Static int8: constant scales of activations, with QuantizeLinear and DequantizeLinear around operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import INT8
from sabir.ir import Node, places
from sabir.quantization._calibration import observe
from sabir.quantization._codes import codes_of_channels
from sabir.quantization._editing import Edit
from sabir.quantization._plan import Plan, planned
from sabir.quantization._ranges import Quantized, RangeChoice
from sabir.rewriting import InsertionPoint, constant_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Model, Value
    from sabir.quantization._codes import Codes
    from sabir.quantization._exclusion import Exclusion
    from sabir.quantization._report import NodeReport
    from sabir.quantization._sources import Feeds
    from sabir.quantization._weights import Weighted
    from sabir.schema import Registry

OPSET = 13  # DequantizeLinear has scales along an axis
_BIAS = 2  # the input of Gemm and Conv
_MOST_BIAS = float(1 << 30)  # of an int32, half of the range: sums must not overflow

__all__ = ["OPSET", "RangeChoice", "quantize_statically"]


def quantize_statically(
    model: Model,
    feeds: Feeds,
    choice: RangeChoice,
    excluded: Exclusion,
    registry: Registry,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Model, tuple[NodeReport, ...]]:
    """Change a model: quantized operators read and compute what QuantizeLinear rounds to 8 bits."""
    edit = Edit(model, registry)
    plan = planned(edit, excluded)
    observed = observe(model, plan.values, feeds, registry, progress, with_counts=choice.method != "minmax")
    parameters = {value: choice.parameters(observed[value]) for value in plan.values}
    for value, source in plan.same_range.items():
        parameters[value] = parameters[source]
    static = _Static(edit, plan, parameters)
    static.run()
    return edit.finish(), tuple(static.reports)


class _Static:
    """One edit of a model whose parameters are known."""

    def __init__(self, edit: Edit, plan: Plan, parameters: dict[Value, Quantized]) -> None:
        self._edit, self._plan, self._parameters = edit, plan, parameters
        self._rounded: dict[Value, Value] = {}
        self.reports: list[NodeReport] = []

    def run(self) -> None:
        reports = dict(self._plan.kept)
        for weighted in self._plan.weighted:
            reports[weighted.node] = weighted.quantized(INT8.name, self._quantize_weights(weighted))
        reports.update(self._plan.others)
        order = [place.object for place in places(self._edit.model, Node)]
        self.reports = [reports[node] for node in order if node in reports]
        for value in self._plan.values:
            self._round(value)

    def _quantize_weights(self, weighted: Weighted) -> float:
        codes = self._edit.dequantize_weights(weighted, _channels, with_zero=True)
        self._quantize_bias(weighted, codes)
        return codes.error

    def _quantize_bias(self, weighted: Weighted, codes: Codes) -> None:
        """Store a constant bias as int32 in the scale of the sums of products, unless it is too large."""
        node = weighted.node
        bias = node.inputs[_BIAS] if len(node.inputs) > _BIAS else None
        data = None if bias is None else constant_of(bias, self._edit.model.state())
        activation = node.inputs[0]
        if bias is None or data is None or activation is None or data.shape != codes.scale.shape:
            return
        scale = codes.scale * self._parameters[activation].scale
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            integers = np.rint(data.array() / scale)
        if not (np.abs(integers) <= _MOST_BIAS).all() or not (scale > 0).all():
            return
        b = self._edit.rewriter.builder(self._plan.graph)
        name = bias.name or "bias"
        real = b.DequantizeLinear(
            b.initializer(f"{name}_quantized", integers.astype(np.int32)),
            b.initializer(f"{name}_scale", scale),
            b.initializer(f"{name}_zero_point", np.zeros(len(scale), np.int32)),
            axis=0,
        )
        self._edit.rewriter.place(b, InsertionPoint.before(node))
        self._edit.read(node, _BIAS, real)

    def _round(self, value: Value) -> None:
        """Round a value to 8 bits for the readers that want it."""
        readers = self._plan.readers(value)
        b = self._edit.rewriter.builder(self._plan.graph)
        scale, zero = self._parameters[value]
        scales = b.initializer(f"{value.name}_scale", np.asarray(scale))
        zeros = b.initializer(f"{value.name}_zero_point", np.asarray(zero))
        real = b.DequantizeLinear(b.QuantizeLinear(value, scales, zeros), scales, zeros)
        self._edit.rewriter.place(b, self._point(value, [node for node, _ in readers]))
        for node, slot in readers:
            node.inputs[slot] = real

    def _point(self, value: Value, readers: list[Node]) -> InsertionPoint:
        if value.node is not None:
            return InsertionPoint.after(value.node)
        return InsertionPoint.before(readers[0]) if readers else InsertionPoint.end(self._plan.graph)


def _channels(weighted: Weighted) -> Codes:
    return codes_of_channels(weighted.array(), weighted.channel, INT8)
