"""Metrics of classes that count answers: precision, recall, F1, and areas under ROC curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import DOUBLE, INT64
from sabir.training._classification import BinaryCrossEntropy
from sabir.training._labels import LabelLoss, rank_of, tensor_type_of
from sabir.training._streamed import StreamedMetric, part, stacked, total

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Builder, Value
    from sabir.training._losses import Loss

_COUNTS = ("precision", "recall", "f1")
_AVERAGES = ("macro", "micro", "weighted")
CLASS_METRICS = (
    *_COUNTS, *(f"{name}_{average}" for name in _COUNTS for average in _AVERAGES),
    "balanced_accuracy", "roc_auc", "roc_auc_ovr",
)  # fmt: skip
"""The names of the metrics of classes, which are those of scikit-learn."""

_TWO = 2  # classes
_BINS = 8192  # of the logits from -_SPAN to _SPAN
_SPAN = 16.0
_MOST_CLASSES = 256  # whose curves are counted, in as many times 128 KiB
_SAMPLES = np.array([0], np.int64)  # the axis


class _Answers(NamedTuple):
    """What a metric of classes compares, one row a place and one column a class.

    `chosen` and `true` are truth values, `logits` numbers of double, and `counted` says which rows count;
    None: all.
    """

    chosen: Value
    true: Value
    logits: Callable[[], Value]
    counted: Value | None


def class_metric(name: str, loss: Loss, b: Builder, scores: Value) -> StreamedMetric:
    """Return the metric of a name; raises UnsupportedError where there is none for the loss."""
    if not isinstance(loss, (LabelLoss, BinaryCrossEntropy)):
        raise UnsupportedError(f"the metric {name} is for losses of classes, not for {type(loss).__name__}")
    kind = tensor_type_of(b, scores)
    several = isinstance(loss, LabelLoss)
    axis = loss.axis_of(kind) if isinstance(loss, LabelLoss) else 1
    size = (kind.shape or ())[axis] if rank_of(kind) > axis else 1
    classes = size if isinstance(size, int) else None
    is_binary = classes == (_TWO if several else 1)
    base, _, average = name.partition("_")
    if name.startswith("roc_auc"):
        return _roc_auc(name, loss, classes, is_binary=is_binary)
    if name in _COUNTS and not is_binary:
        raise UnsupportedError(
            f"the metric {name} is for two classes, and the output is {kind}; for more there are "
            f"{', '.join(f'{name}_{average}' for average in _AVERAGES)}"
        )
    if name == "balanced_accuracy":
        if not several and not is_binary:
            raise UnsupportedError(
                f"the metric {name} is for labels or one truth value; the output is {kind}"
            )
        base, average = "recall", "present"
    # one truth value has two classes, several of them have one each
    value = _Counted(base, average, several=several or is_binary)
    return StreamedMetric(
        lambda b, scores, target: _counts(
            b, _answers(b, loss, scores, target), opposite=is_binary and not several
        ),
        value.build,
    )


class _Counted(NamedTuple):
    """A metric of the numbers of right, chosen and true answers for each class."""

    base: str
    average: str
    several: bool

    def build(self, b: Builder, sums: Value) -> Value:
        """Build the metric of the sums, [3, classes]."""
        right, chosen, true = (part(b, sums, index) for index in range(3))
        if self.average == "micro":
            return self._score(b, total(b, right), total(b, chosen), total(b, true))
        scores = self._score(b, right, chosen, true)
        if not self.average:  # the last class is the positive one, or the only one
            return b.Squeeze(b.Gather(scores, np.array([-1], np.int64), axis=0))
        if self.average == "weighted":
            return b.Div(total(b, b.Mul(scores, true)), total(b, true))
        if not self.several:
            return b.ReduceMean(scores, keepdims=0)
        occurring = true if self.average == "present" else b.Add(chosen, true)
        present = b.Cast(b.Greater(occurring, np.float64(0)), to=DOUBLE.number)
        return b.Div(total(b, b.Mul(scores, present)), total(b, present))

    def _score(self, b: Builder, right: Value, chosen: Value, true: Value) -> Value:
        """Build the metric of each class: 0 where nothing is divided."""
        upper, lower = right, {"precision": chosen, "recall": true}.get(self.base)
        if lower is None:
            upper, lower = b.Add(right, right), b.Add(chosen, true)
        return b.Div(upper, b.Max(lower, np.float64(1)))


def _answers(b: Builder, loss: LabelLoss | BinaryCrossEntropy, scores: Value, target: Value) -> _Answers:
    if isinstance(loss, LabelLoss):
        return _answers_of_labels(b, loss, scores, target)
    shape = b.Concat(b.Shape(scores, end=1), np.array([-1]), axis=0)
    columns, truth = (b.Reshape(value, shape) for value in (scores, target))
    chosen = b.Greater(columns, _number(b, columns, loss.border))
    true = b.Greater(truth, _number(b, truth, 0.5))
    return _Answers(chosen, true, lambda: _binary_logits(b, loss, columns), None)


def _answers_of_labels(b: Builder, loss: LabelLoss, scores: Value, target: Value) -> _Answers:
    kind = tensor_type_of(b, scores)
    axis, rank = loss.axis_of(kind), rank_of(kind)
    last = b.Transpose(scores, perm=[i for i in range(rank) if i != axis] + [axis])
    count = b.Shape(last, start=rank - 1)
    rows = b.Reshape(last, b.Concat(np.array([-1]), count, axis=0))
    labels = b.Reshape(target, np.array([-1, 1]))
    classes = b.Range(np.array(0, np.int64), b.Squeeze(count), np.array(1, np.int64))
    best = b.ArgMax(rows, axis=1, keepdims=1)
    counted = loss.counted(b, labels)
    return _Answers(
        b.Equal(best, classes),
        b.Equal(labels, classes),
        lambda: _class_logits(b, loss, rows),
        counted,
    )


def _counts(b: Builder, answers: _Answers, *, opposite: bool) -> Value:
    """Build the numbers of right, chosen and true answers for each class, [3, classes].

    With `opposite` the opposite of the only class is a class too, the first one.
    """
    chosen, true = answers.chosen, answers.true
    if opposite:
        chosen, true = (b.Concat(b.Not(values), values, axis=1) for values in (chosen, true))
    if answers.counted is not None:
        chosen, true = b.And(chosen, answers.counted), b.And(true, answers.counted)
    found = [b.Cast(v, to=DOUBLE.number) for v in (b.And(chosen, true), chosen, true)]
    return stacked(b, [b.ReduceSum(values, _SAMPLES, keepdims=0) for values in found])


def _roc_auc(
    name: str, loss: LabelLoss | BinaryCrossEntropy, classes: int | None, *, is_binary: bool
) -> StreamedMetric:
    """Return the area under the curve: of the last class of two, or the mean of those of all classes.

    Scores are counted in bins of logits. Two scores in one bin count as equal, so an area is off by half the
    share of pairs in one bin at most.
    """
    several = isinstance(loss, LabelLoss)
    if classes is None or classes > _MOST_CLASSES:
        raise UnsupportedError(
            f"the metric {name} is for at most {_MOST_CLASSES} classes, whose number is known"
        )
    if name == "roc_auc" and several and not is_binary:
        raise UnsupportedError(f"the metric roc_auc is for two classes; for {classes} there is roc_auc_ovr")
    only_last = several and is_binary and name == "roc_auc"

    def sums(b: Builder, scores: Value, target: Value) -> Value:
        answers = _answers(b, loss, scores, target)
        logits = b.Clip(answers.logits(), np.float64(-_SPAN), np.float64(_SPAN))
        place = b.Mul(b.Add(logits, np.float64(_SPAN)), np.float64(_BINS / (2 * _SPAN)))
        bins = b.Min(b.Cast(place, to=INT64.number), np.int64(_BINS - 1))
        offset = np.arange(classes, dtype=np.int64) * (2 * _BINS)
        index = b.Add(b.Add(bins, b.Mul(b.Cast(answers.true, to=INT64.number), np.int64(_BINS))), offset)
        ones = b.Add(b.Mul(place, np.float64(0)), np.float64(1))
        if answers.counted is not None:
            ones = b.Mul(ones, b.Cast(answers.counted, to=DOUBLE.number))
        flat = np.array([-1])
        empty = b.ConstantOfShape(np.array([classes * 2 * _BINS]), value=np.zeros(1))
        found = b.ScatterElements(
            empty, b.Reshape(index, flat), b.Reshape(ones, flat), axis=0, reduction="add"
        )
        return b.Reshape(found, np.array([classes, 2, _BINS]))

    def value(b: Builder, sums: Value) -> Value:
        wrong, right = (b.Gather(sums, np.array(i, np.int64), axis=1) for i in range(2))
        below = b.CumSum(wrong, np.array(1, np.int64), exclusive=1)
        ahead = b.Mul(right, b.Add(below, b.Mul(wrong, np.float64(0.5))))
        axis = np.array([1], np.int64)
        pairs = b.Mul(*(b.ReduceSum(v, axis, keepdims=0) for v in (wrong, right)))
        areas = b.Div(b.ReduceSum(ahead, axis, keepdims=0), pairs)
        return (
            b.Gather(areas, np.array(classes - 1, np.int64)) if only_last else b.ReduceMean(areas, keepdims=0)
        )

    return StreamedMetric(sums, value)


def _class_logits(b: Builder, loss: LabelLoss, rows: Value) -> Value:
    """Build log(p / (1 - p)) of the probability of each class."""
    wide = b.Cast(rows, to=DOUBLE.number)
    logs = b.LogSoftmax(wide, axis=1) if loss.softmax else wide
    return b.Sub(logs, b.Log(b.Sub(np.float64(1), b.Exp(logs))))


def _binary_logits(b: Builder, loss: BinaryCrossEntropy, columns: Value) -> Value:
    wide = b.Cast(columns, to=DOUBLE.number)
    return wide if loss.logits else b.Sub(b.Log(wide), b.Log(b.Sub(np.float64(1), wide)))


def _number(b: Builder, like: Value, value: float) -> np.ndarray:
    return np.asarray(value, tensor_type_of(b, like).element.dtype)


__all__ = ["CLASS_METRICS", "class_metric"]
