"""Metrics that are functions of sums over samples: an epoch has its true value, and no mean of batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import DOUBLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Builder, Value
    from sabir.training._losses import Function


@dataclass(frozen=True, slots=True)
class StreamedMetric:
    """A metric that is computed from sums over samples, which `fit` adds up over an epoch.

    `sums(b, scores, target)` builds a tensor of double, of rank 1 or more, with the sums for a batch, and
    `value(b, sums)` the metric, a scalar, of them. Both are part of the model: an output with the name of
    the metric, and one with `_sums` after that.

    >>> counting = StreamedMetric(
    ...     lambda b, scores, target: b.Cast(b.Shape(scores), to=11),
    ...     lambda b, sums: b.ReduceSum(sums, keepdims=0),
    ... )
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) <float[1] w = {1.0}> { y = Mul (x, w) }''')
    >>> session = sabir.TrainingSession(prepare(model, 'mse', metrics={'samples': counting}))
    >>> x = np.ones(5, np.float32)
    >>> session.fit({'x': x, 'label': x}, batch=2)[0].results['samples']
    5.0
    """

    sums: Function
    value: Callable[[Builder, Value], Value]

    def value_of(self, b: Builder, sums: Value, _: Value) -> Value:
        """Build the metric of the sums."""
        return self.value(b, sums)


def ratio_of(terms: Callable[[Builder, Value, Value], tuple[Value, Value | None]]) -> StreamedMetric:
    """Return the metric that is the mean of terms, where some of them may not count.

    `terms` returns numbers or truth values, and which of them count; None: all.
    """

    def sums(b: Builder, scores: Value, target: Value) -> Value:
        found, counted = terms(b, scores, target)
        wide = b.Cast(found, to=DOUBLE.number)
        if counted is None:
            count = b.Cast(b.Size(found), to=DOUBLE.number)
        else:
            wide = b.Where(counted, wide, np.float64(0))
            count = total(b, b.Cast(counted, to=DOUBLE.number))
        return stacked(b, [total(b, wide), count])

    return StreamedMetric(sums, ratio)


def ratio(b: Builder, sums: Value) -> Value:
    """Build the ratio of two sums."""
    return b.Div(part(b, sums, 0), part(b, sums, 1))


def total(b: Builder, values: Value) -> Value:
    """Build the sum of all elements."""
    return b.ReduceSum(values, keepdims=0)


def stacked(b: Builder, values: list[Value]) -> Value:
    """Build one tensor of several, along a new first axis."""
    first = np.array([0], np.int64)
    return b.Concat(*(b.Unsqueeze(value, first) for value in values), axis=0)


def part(b: Builder, values: Value, index: int) -> Value:
    """Build one item of the first axis."""
    return b.Gather(values, np.array(index, np.int64), axis=0)


__all__ = ["StreamedMetric", "part", "ratio", "ratio_of", "stacked", "total"]
