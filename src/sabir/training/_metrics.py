"""Metrics by name: numbers that a training model reports beside its loss."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from sabir.base import UnsupportedError, quote, suggest
from sabir.elements import DOUBLE
from sabir.ir import TensorType
from sabir.training._class_metrics import CLASS_METRICS, class_metric
from sabir.training._labels import LabelLoss
from sabir.training._losses import LOSS, SUMS, built_scalar, dtype_of
from sabir.training._number_metrics import NUMBER_METRICS, number_metric
from sabir.training._streamed import StreamedMetric, ratio_of

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.training._losses import Function, Loss

    AnyMetric: TypeAlias = str | Function | StreamedMetric
    Metrics: TypeAlias = AnyMetric | Iterable[AnyMetric] | Mapping[str, AnyMetric]
    """What `prepare` takes for metrics: names, functions with a name, or either by the name of an output."""

METRICS = ("accuracy", "top_5", "perplexity", *CLASS_METRICS, *NUMBER_METRICS)
"""The names of metrics that `prepare` and `sabir train` know; the number of `top_5` may be another."""

_TOP = re.compile(r"top_([1-9][0-9]*)")


class Metric(NamedTuple):
    """A metric and the name of its output."""

    name: str
    asked: AnyMetric

    def build(self, loss: Loss, b: Builder, compared: tuple[Value, Value], prefix: str) -> list[Value]:
        """Build the metric, a scalar, of scores and a target, and the sums that it is computed from, if any.

        They become outputs. Raises UnsupportedError for a metric that does not exist for the loss.
        """
        name = f"{prefix}{self.name}"
        if not isinstance(self.asked, (str, StreamedMetric)):
            return [b.output(built_scalar(self.asked, f"metric {quote(self.name)}", b, *compared), name)]
        metric = _named(self.asked, loss, b, compared) if isinstance(self.asked, str) else self.asked
        sums = b.output(self._checked(b, metric.sums(b, *compared)), f"{name}{SUMS}")
        value = built_scalar(metric.value_of, f"metric {quote(self.name)}", b, sums, sums)
        return [b.output(value, name), sums]

    def _checked(self, b: Builder, sums: Value) -> Value:
        """Return the sums of a batch; raises UnsupportedError where they are no tensor of double."""
        kind = b.type_of(sums)
        if isinstance(kind, TensorType) and kind.element is DOUBLE and kind.shape != ():
            return sums
        raise UnsupportedError(
            f"the sums of the metric {quote(self.name)} are {kind or 'of unknown type'}; they must be double "
            "of rank 1 or more"
        )


def _named(name: str, loss: Loss, b: Builder, compared: tuple[Value, Value]) -> StreamedMetric:
    """Return the metric of a name; raises UnsupportedError where there is none for the loss."""
    if name == "accuracy":
        return ratio_of(loss.right)
    top = _TOP.fullmatch(name)
    if top is not None:
        chosen, k = _of_labels(loss, name), int(top[1])
        return ratio_of(lambda b, scores, target: chosen.top(b, scores, target, k))
    if name == "perplexity":
        return _of_labels(loss, name).perplexity()
    if name in CLASS_METRICS:
        return class_metric(name, loss, b, compared[0])
    if name not in NUMBER_METRICS:
        hint = suggest(name, METRICS)
        raise UnsupportedError(
            f"there is no metric {quote(name)}{hint}; there are {', '.join(METRICS)}, and functions"
        )
    scores, target = compared
    if dtype_of(b, scores) != dtype_of(b, target):
        raise UnsupportedError(f"the metric {name} compares numbers; the target is {b.type_of(target)}")
    return number_metric(name, loss)


def metrics_of(asked: Metrics) -> tuple[Metric, ...]:
    """Return metrics that are asked for by name, as functions, or by the names of outputs.

    Raises UnsupportedError for a function without a name, or a name that is the loss's or occurs twice.
    """
    if isinstance(asked, Mapping):
        found = tuple(starmap(Metric, cast("Mapping[str, AnyMetric]", asked).items()))
    else:
        each: list[AnyMetric] = (
            [*asked] if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
        )
        found = tuple(Metric(one if isinstance(one, str) else _name(one), one) for one in each)
    names = [LOSS, *(metric.name for metric in found)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnsupportedError(f"two results have the name {quote(twice)}; a dict gives each metric its name")
    return found


def _name(function: Function | StreamedMetric) -> str:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise UnsupportedError("a function without a name needs a dict: metrics={'name': function}")
    return name


def _of_labels(loss: Loss, name: str) -> LabelLoss:
    if not isinstance(loss, LabelLoss):
        raise UnsupportedError(f"the metric {name} is for losses of labels, not for {type(loss).__name__}")
    return loss


__all__ = ["METRICS", "Metric", "Metrics", "metrics_of"]
