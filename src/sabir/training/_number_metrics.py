"""Metrics of numbers: errors, and the share of the variance that is explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import DOUBLE
from sabir.training._losses import dtype_of
from sabir.training._streamed import StreamedMetric, part, ratio_of, stacked

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.training._losses import Loss

_ROUNDING = 1e-13  # the share of a sum of squares below which a variance is that of rounding
_SAMPLES = np.array([0], np.int64)  # the axis


def number_metric(name: str, loss: Loss) -> StreamedMetric:
    """Return a metric of NUMBER_METRICS; targets that a loss ignores do not count.

    >>> from sabir.training import MeanSquaredError
    >>> type(number_metric('mae', MeanSquaredError())).__name__
    'StreamedMetric'
    """
    if name == "r2":
        return StreamedMetric(lambda b, scores, target: _moments(b, scores, target, loss), _r2)

    def terms(b: Builder, scores: Value, target: Value) -> tuple[Value, Value | None]:
        error, counted = _wide(b, b.Sub(scores, target)), loss.counted(b, target)
        return b.Mul(error, error) if name == "mse" else b.Abs(error), counted

    return ratio_of(terms)


def _moments(b: Builder, scores: Value, target: Value, loss: Loss) -> Value:
    """Build, for each column, the number of samples and sums of targets, their squares and squared errors."""
    counted = loss.counted(b, target)
    if counted is not None:
        zero = np.zeros((), dtype_of(b, target))
        scores, target = (b.Where(counted, value, zero) for value in (scores, target))
    error, truth = _columns(b, b.Sub(scores, target)), _columns(b, target)
    ones = b.Add(b.Mul(truth, np.float64(0)), np.float64(1))
    if counted is not None:
        ones = _columns(b, counted)
    parts = [ones, truth, b.Mul(truth, truth), b.Mul(error, error)]
    return stacked(b, [b.ReduceSum(values, _SAMPLES, keepdims=0) for values in parts])


def _columns(b: Builder, value: Value) -> Value:
    """Build the numbers of a value in double, with a row for each sample."""
    return b.Reshape(_wide(b, value), b.Concat(b.Shape(value, end=1), np.array([-1]), axis=0))


def _r2(b: Builder, sums: Value) -> Value:
    """Build the mean over the columns; that of a constant column is 1 without an error, else 0."""
    count, linear, squares, rest = (part(b, sums, index) for index in range(4))
    whole = b.Sub(squares, b.Div(b.Mul(linear, linear), count))
    constant = b.LessOrEqual(whole, b.Mul(squares, np.float64(_ROUNDING)))
    one, zero = np.float64(1), np.float64(0)
    share = b.Div(rest, b.Where(constant, one, whole))
    explained = b.Where(constant, b.Where(b.Equal(rest, zero), one, zero), b.Sub(one, share))
    return b.ReduceMean(explained, keepdims=0)


def _wide(b: Builder, value: Value) -> Value:
    return b.Cast(value, to=DOUBLE.number)


NUMBER_METRICS = ("mse", "mae", "r2")
"""The names of the metrics of numbers."""

__all__ = ["NUMBER_METRICS", "number_metric"]
