"""Metrics: numbers that a training model reports beside its loss."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from sabir.base import UnsupportedError, quote
from sabir.ir import TensorType
from sabir.training._labels import LabelLoss
from sabir.training._losses import LOSS, built_scalar, dtype_of, number
from sabir.training._regression import MeanAbsoluteError, MeanSquaredError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Builder, Value
    from sabir.training._losses import Function, Loss

    Metrics: TypeAlias = str | Function | Iterable[str | Function] | Mapping[str, str | Function]
    """What `prepare` takes for metrics: names, functions with a name, or either by the name of an output."""

METRICS = ("accuracy", "top_5", "perplexity", "mse", "mae", "r2")
"""The names of metrics that `prepare` and `sabir train` know; the number of `top_5` may be another."""

_TOP = re.compile(r"top_([1-9][0-9]*)")
_NUMBERS = {"mse": MeanSquaredError().build, "mae": MeanAbsoluteError().build}


class Metric(NamedTuple):
    """A metric and the name of its output."""

    name: str
    asked: str | Function

    def build(self, loss: Loss, b: Builder, scores: Value, target: Value) -> Value:
        """Build the metric, a scalar; raises UnsupportedError for one that does not exist for the loss."""
        if not isinstance(self.asked, str):
            return built_scalar(self.asked, f"metric {quote(self.name)}", b, scores, target)
        if self.asked == "accuracy":
            return loss.accuracy(b, scores, target)
        if self.asked == "perplexity":
            return _of_labels(loss, self.asked).perplexity(b, scores, target)
        top = _TOP.fullmatch(self.asked)
        if top:
            return _of_labels(loss, self.asked).top(b, scores, target, int(top[1]))
        if self.asked not in METRICS:
            raise UnsupportedError(
                f"there is no metric {quote(self.asked)}; there are {', '.join(METRICS)}, and functions"
            )
        if dtype_of(b, scores) != dtype_of(b, target):
            raise UnsupportedError(
                f"the metric {self.asked} compares numbers; the target is {b.type_of(target)}"
            )
        return _NUMBERS.get(self.asked, _r2)(b, scores, target)


def metrics_of(asked: Metrics) -> tuple[Metric, ...]:
    """Return metrics that are asked for by name, as functions, or by the names of outputs.

    Raises UnsupportedError for a function without a name, or a name that is the loss's or occurs twice.
    """
    if isinstance(asked, Mapping):
        found = tuple(starmap(Metric, cast("Mapping[str, str | Function]", asked).items()))
    else:
        each = [asked] if isinstance(asked, str) or callable(asked) else [*asked]
        found = tuple(Metric(one if isinstance(one, str) else _name(one), one) for one in each)
    names = [LOSS, *(metric.name for metric in found)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnsupportedError(f"two results have the name {quote(twice)}; a dict gives each metric its name")
    return found


def _name(function: Function) -> str:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise UnsupportedError("a function without a name needs a dict: metrics={'name': function}")
    return name


def _of_labels(loss: Loss, name: str) -> LabelLoss:
    if not isinstance(loss, LabelLoss):
        raise UnsupportedError(f"the metric {name} is for losses of labels, not for {type(loss).__name__}")
    return loss


def _r2(b: Builder, scores: Value, target: Value) -> Value:
    """Build the coefficient of determination, the mean over the columns; in a constant one it is 1 or 0."""
    samples = np.array([0], np.int64)
    zero, one = number(b, scores, 0), number(b, scores, 1)
    error = b.Sub(scores, target)
    deviation = b.Sub(target, b.ReduceMean(target, samples))
    rest, whole = (b.ReduceSum(b.Mul(v, v), samples, keepdims=0) for v in (error, deviation))
    constant = b.Equal(whole, zero)
    share = b.Div(rest, b.Where(constant, one, whole))
    explained = b.Where(constant, b.Where(b.Equal(rest, zero), one, zero), b.Sub(one, share))
    kind = b.type_of(explained)
    return (
        explained
        if isinstance(kind, TensorType) and kind.shape == ()
        else b.ReduceMean(explained, keepdims=0)
    )


__all__ = ["METRICS", "Metric", "Metrics", "metrics_of"]
