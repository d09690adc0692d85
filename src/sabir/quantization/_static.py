"""Static int8: constant scales of activations, with QuantizeLinear and DequantizeLinear around operators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import INT8
from sabir.ir import Node, places
from sabir.quantization._biases import BIAS, Bias, bias_of
from sabir.quantization._calibration import observe
from sabir.quantization._codes import codes_of_channels
from sabir.quantization._correction import mean_errors, product_of
from sabir.quantization._editing import Edit
from sabir.quantization._equalization import equalize
from sabir.quantization._plan import Plan, planned
from sabir.quantization._ranges import Quantized, RangeChoice
from sabir.quantization._rectifiers import is_implied
from sabir.quantization._tables import quantize_table
from sabir.rewriting import InsertionPoint, constant_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Model, Value
    from sabir.quantization._codes import Codes
    from sabir.quantization._correction import Product
    from sabir.quantization._exclusion import Exclusion
    from sabir.quantization._report import NodeReport
    from sabir.quantization._shift import Shift
    from sabir.quantization._sources import Feeds
    from sabir.quantization._weights import Weighted
    from sabir.schema import Registry

OPSET = 13  # DequantizeLinear has scales along an axis
_MOST_BIAS = float(1 << 30)  # of an int32, half of the range: sums must not overflow

__all__ = ["OPSET", "RangeChoice", "StaticChoice", "quantize_statically"]


@dataclass(frozen=True)
class StaticChoice:
    """What a caller chose for static int8."""

    ranges: RangeChoice
    corrects_bias: bool
    equalizes: bool
    uncorrected: str = ""  # why biases stay, where the caller did not ask for that


def quantize_statically(
    model: Model,
    feeds: Feeds,
    correcting: Feeds,
    choice: StaticChoice,
    excluded: Exclusion,
    registry: Registry,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Model, tuple[NodeReport, ...]]:
    """Change a model: quantized operators read and compute what QuantizeLinear rounds to 8 bits.

    `feeds` determine the ranges of activations, and `correcting` the means of errors for bias correction.
    """
    edit = Edit(model, registry)
    factors = equalize(edit, excluded) if choice.equalizes else {}
    plan = planned(edit, excluded)
    ranges, passes = choice.ranges, _Passes(progress, 1 + choice.corrects_bias)
    observed = observe(
        model, plan.values, feeds, registry, passes.next(), with_counts=ranges.method != "minmax"
    )
    parameters = {value: ranges.parameters(observed[value]) for value in plan.values}
    for value, source in plan.same_range.items():
        parameters[value] = parameters[source]
    static = _Static(edit, plan, parameters)
    before = model.clone() if choice.corrects_bias else None
    static.round()
    if before is not None:
        static.correct(before, correcting, passes.next())
    static.round_biases()
    return edit.finish(), static.reports(factors, choice.uncorrected)


class _Passes:
    """The progress of several passes over the data as that of one."""

    def __init__(self, progress: Callable[[int, int], None] | None, count: int) -> None:
        self._progress, self._count = progress, count
        self._before = self._done = 0

    def next(self) -> Callable[[int, int], None]:
        """Return what the next pass calls with its runs done and of all."""
        self._before = self._done

        def report(done: int, of: int) -> None:
            self._done = self._before + done
            if self._progress is not None:
                self._progress(self._done, of * self._count)

        return report


class _Static:
    """One edit of a model whose parameters are known."""

    def __init__(self, edit: Edit, plan: Plan, parameters: dict[Value, Quantized]) -> None:
        self._edit, self._plan, self._parameters = edit, plan, parameters
        self._activations = {weighted.node: weighted.node.inputs[0] for weighted in plan.weighted}
        self._order = [place.object for place in places(edit.model, Node)]
        self._codes: dict[Node, Codes] = {}
        self._tables: dict[Node, NodeReport] = {}
        self._shifts: dict[Node, Shift] = {}
        self._uncorrected: dict[Node, str] = {}

    def round(self) -> None:
        """Round weights and activations; biases stay as they are."""
        for weighted in self._plan.weighted:
            self._codes[weighted.node] = self._edit.dequantize_weights(weighted, _channels, with_zero=True)
        for value in self._plan.values:
            self._round(value)
        for table in self._plan.tables:
            self._tables[table.node] = quantize_table(self._edit, table)

    def correct(self, before: Model, feeds: Feeds, progress: Callable[[int, int], None]) -> None:
        """Add the mean error of each output channel to the biases; `before` is the model of floats."""
        chosen: list[tuple[Weighted, Bias, Product]] = []
        for weighted in self._plan.weighted:
            bias = bias_of(weighted, self._edit.model.state())
            if isinstance(bias, str):
                self._uncorrected[weighted.node] = bias
            elif (product := product_of(weighted)) is not None:
                chosen.append((weighted, bias, product))
        if not chosen:
            return
        products = [product for _, _, product in chosen]
        shifts = mean_errors(before, self._edit.model, products, feeds, self._edit.registry, progress)
        for (weighted, bias, _), shift in zip(chosen, shifts, strict=True):
            bias.store(self._edit, bias.plus(shift.correction))
            self._shifts[weighted.node] = shift

    def round_biases(self) -> None:
        """Store the constant biases of Conv and Gemm as int32."""
        for weighted in self._plan.weighted:
            self._quantize_bias(weighted, self._codes[weighted.node])

    def reports(self, factors: dict[Node, float], uncorrected: str) -> tuple[NodeReport, ...]:
        """Return the reports of all nodes; `factors` has the largest one of those that were equalized.

        `uncorrected` is why no bias was corrected at all.
        """
        reports = self._plan.kept | self._plan.others | self._tables
        for weighted in self._plan.weighted:
            shift = self._shifts.get(weighted.node)
            reports[weighted.node] = replace(
                weighted.quantized(INT8.name, self._codes[weighted.node].error),
                shift=None if shift is None else shift.relative,
                uncorrected=self._uncorrected.get(weighted.node, uncorrected),
                equalized=factors.get(weighted.node),
            )
        return tuple(reports[node] for node in self._order if node in reports)

    def _quantize_bias(self, weighted: Weighted, codes: Codes) -> None:
        """Store a constant bias as int32 in the scale of the sums of products, unless it is too large."""
        node = weighted.node
        bias = node.inputs[BIAS] if len(node.inputs) > BIAS else None
        data = None if bias is None else constant_of(bias, self._edit.model.state())
        activation = self._activations[node]
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
        self._edit.read(node, BIAS, real)

    def _round(self, value: Value) -> None:
        """Round a value to 8 bits for the readers that want it."""
        readers = self._plan.readers(value)
        b = self._edit.rewriter.builder(self._plan.graph)
        scale, zero = self._parameters[value]
        scales = b.initializer(f"{value.name}_scale", np.asarray(scale))
        zeros = b.initializer(f"{value.name}_zero_point", np.asarray(zero))
        rounded = b.QuantizeLinear(self._unrectified(value, len(readers)), scales, zeros)
        real = b.DequantizeLinear(rounded, scales, zeros)
        self._edit.rewriter.place(b, self._point(value, [node for node, _ in readers]))
        for node, slot in readers:
            self._edit.read(node, slot, real)

    def _unrectified(self, value: Value, readers: int) -> Value:
        """Return what a rectifier reads, if rounding clips its result as well, and all read it rounded."""
        node, parameters = value.node, self._parameters[value]
        if node is None or value.read_count != readers or not node.inputs:
            return value
        source = node.inputs[0]
        if source is None or not is_implied(node, parameters, self._edit.model.state()):
            return value
        return source

    def _point(self, value: Value, readers: list[Node]) -> InsertionPoint:
        if value.node is not None:
            return InsertionPoint.after(value.node)
        return InsertionPoint.before(readers[0]) if readers else InsertionPoint.end(self._plan.graph)


def _channels(weighted: Weighted) -> Codes:
    return codes_of_channels(weighted.array(), weighted.channel, INT8)
