"""Bias correction: the mean error of each output channel, which goes into the bias.

Rounding weights shifts the results of a product by nearly the same amount in each run, and later nodes add
such shifts up. The method is that of Nagel, van Baalen, Blankevoort and Welling (2019), section 4.2, with
means over the calibration data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import EvaluationError, quote
from sabir.elements import FLOAT
from sabir.ir import Node, TensorType
from sabir.quantization._shift import Shift
from sabir.rewriting import InsertionPoint, Rewriter
from sabir.runtime import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Array, Model, Value
    from sabir.quantization._sources import Feeds
    from sabir.quantization._weights import Weighted
    from sabir.rewriting import DetachedBuilder
    from sabir.schema import Registry


class Product(NamedTuple):
    """A product whose bias is corrected: its result by name, the rank of its weights, its output channels."""

    name: str
    rank: int
    channels: int
    is_convolution: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a number for each channel that is added to the result."""
        return (1, self.channels, *(1,) * (self.rank - 2)) if self.is_convolution else (self.channels,)


@dataclass
class _Probe:
    """A copy of a model that measures, with the names of its inputs and outputs for each product."""

    model: Model
    names: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])


def product_of(weighted: Weighted) -> Product | None:
    """Return what correction needs to know of a node with weights; None where it computes nothing."""
    result = next(iter(weighted.node.outputs), None)
    if result is None:
        return None
    shape = weighted.data.shape
    return Product(result.name, len(shape), shape[weighted.channel], weighted.node.op == "Conv")


def mean_errors(
    model: Model,
    quantized: Model,
    products: Sequence[Product],
    feeds: Feeds,
    registry: Registry,
    progress: Callable[[int, int], None] | None = None,
) -> list[Shift]:
    """Return the mean error of each channel of products, each under the corrections of those before it.

    `quantized` has values of the same names as the float `model`. One run of it shifts the result of each
    product by what corrects it in all runs so far before later nodes read it. So the data is read once, and
    the memory is that of one run of each model. Raises EvaluationError where an error is infinite or no
    number.
    """
    wide, narrow = _with_sums(model, products, registry), _with_shifts(quantized, products, registry)
    of_floats, of_integers = Session(wide.model, registry=registry), Session(narrow.model, registry=registry)
    shifts = [Shift(product.channels) for product in products]
    for number, feed in enumerate(feeds, 1):
        sums = of_floats.run(feed)
        given: dict[str, Array] = {}
        for shift, product, measured, inputs in zip(shifts, products, wide.names, narrow.names, strict=True):
            given |= _begin(shift, product, [np.asarray(sums[name]) for name in measured], inputs)
        found = of_integers.run({**feed, **given})
        for shift, product, names in zip(shifts, products, narrow.names, strict=True):
            mean = np.asarray(found[names[-1]], float).reshape(-1)
            if not np.isfinite(mean).all():
                raise EvaluationError(
                    f"the bias of {quote(product.name)} cannot be corrected: "
                    f"its mean error in run {number} is infinite or no number"
                )
            shift.end(mean)
        if progress is not None:
            progress(number, feeds.count)
    return shifts


def _begin(
    shift: Shift, product: Product, measured: Sequence[Array], inputs: Sequence[str]
) -> dict[str, Array]:
    """Count one more run, given the sums of the float model; return inputs of the quantized one."""
    total, size, square = measured
    goal = shift.begin(total, int(size), float(square)).reshape(product.shape)
    factor = 1 / max(shift.count, 1)
    return {
        name: np.asarray(number, np.float32)
        for name, number in zip(inputs[:3], (goal, factor, shift.trust), strict=True)
    }


def _with_sums(model: Model, products: Sequence[Product], registry: Registry) -> _Probe:
    """Return a copy that computes of each product the sums by channel, the size, and the sum of squares."""
    probe = _Probe(model.clone())
    graph = probe.model.graph
    rewriter = Rewriter(probe.model, registry=registry)
    values = {value.name: value for value in graph.defined()}
    outputs: list[Value] = []
    for product in products:
        value = values[product.name]
        b = rewriter.builder(graph)
        found = _sums(b, value, product), b.Size(value), b.ReduceSum(b.Mul(value, value), keepdims=0)
        _place(rewriter, b, value)
        probe.names.append(tuple(output.name for output in found))
        outputs += found
    graph.outputs, graph.output_infos = outputs, {}
    return probe


def _with_shifts(model: Model, products: Sequence[Product], registry: Registry) -> _Probe:
    """Return a copy whose products are shifted by their mean error times `trust`.

    The mean error is `goal - factor * sum`. The names of a product are those of these three inputs and of the
    mean error.
    """
    probe = _Probe(model.clone())
    graph = probe.model.graph
    rewriter = Rewriter(probe.model, registry=registry)
    values = {value.name: value for value in graph.defined()}
    outputs: list[Value] = []
    for product in products:
        value = values[product.name]
        goal = graph.add_input(rewriter.names.fresh("goal"), _float(product.shape))
        factor = graph.add_input(rewriter.names.fresh("factor"), _float(()))
        trust = graph.add_input(rewriter.names.fresh("trust"), _float(()))
        readers = [use for use in value.uses if isinstance(use.user, Node)]
        b = rewriter.builder(graph)
        mean = b.Sub(goal, b.Mul(_sums(b, value, product), factor))
        shifted = b.Add(value, b.Mul(mean, trust))
        _place(rewriter, b, value)
        for use in readers:
            use.user.inputs[use.slot] = shifted
        probe.names.append((goal.name, factor.name, trust.name, mean.name))
        outputs.append(mean)
    graph.outputs, graph.output_infos = outputs, {}
    return probe


def _sums(b: DetachedBuilder, value: Value, product: Product) -> Value:
    """Return the sum of each channel of a result, in the shape of numbers that are added to it."""
    if product.is_convolution:
        return b.ReduceSum(value, [0, *range(2, product.rank)], keepdims=1)
    return b.ReduceSum(b.Reshape(value, [-1, product.channels]), [0], keepdims=0)


def _place(rewriter: Rewriter, b: DetachedBuilder, value: Value) -> None:
    if value.node is None:
        raise ValueError(f"{value!r} is no result of a node")
    rewriter.place(b, InsertionPoint.after(value.node))


def _float(shape: tuple[int, ...]) -> TensorType:
    return TensorType(FLOAT, shape)
