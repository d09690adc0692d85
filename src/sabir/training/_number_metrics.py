"""Metrics of numbers: errors, and the share of the variance that is explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import DOUBLE
from sabir.training._streamed import StreamedMetric, part, ratio_of, stacked

if TYPE_CHECKING:
    from sabir.ir import Builder, Value

_ROUNDING = 1e-13  # the share of a sum of squares below which a variance is that of rounding
_SAMPLES = np.array([0], np.int64)  # the axis


def _squares(b: Builder, scores: Value, target: Value) -> tuple[Value, None]:
    error = _wide(b, b.Sub(scores, target))
    return b.Mul(error, error), None


def _distances(b: Builder, scores: Value, target: Value) -> tuple[Value, None]:
    return b.Abs(_wide(b, b.Sub(scores, target))), None


def _moments(b: Builder, scores: Value, target: Value) -> Value:
    """Build, for each column, the number of samples and sums of targets, their squares and squared errors."""
    columns = [
        b.Reshape(_wide(b, v), b.Concat(b.Shape(v, end=1), np.array([-1]), axis=0)) for v in (scores, target)
    ]
    error, truth = b.Sub(*columns), columns[1]
    ones = b.Add(b.Mul(truth, np.float64(0)), np.float64(1))
    parts = [ones, truth, b.Mul(truth, truth), b.Mul(error, error)]
    return stacked(b, [b.ReduceSum(values, _SAMPLES, keepdims=0) for values in parts])


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


NUMBER_METRICS = {
    "mse": ratio_of(_squares), "mae": ratio_of(_distances), "r2": StreamedMetric(_moments, _r2),
}  # fmt: skip
"""The metrics of numbers by name."""

__all__ = ["NUMBER_METRICS"]
