"""Losses of classes and of truth values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import FLOAT
from sabir.training._labels import (
    AXIS_1,
    IGNORED,
    ClassLoss,
    LabelLoss,
    rank_of,
    tensor_type_of,
)
from sabir.training._losses import Loss, check_number, number

if TYPE_CHECKING:
    from sabir.ir import Array, Builder, Value

_LEAST_LOGARITHM = -100.0  # what PyTorch takes for the logarithm of 0


@dataclass(frozen=True, slots=True)
class CrossEntropy(LabelLoss):
    """The cross-entropy of classes: the target has the number of the right one, int64.

    If a Softmax computes the output, the loss is computed from the operand of it, else the output is taken
    for logits. The options are as in PyTorch's CrossEntropyLoss with a mean:

    - The classes are along `axis`. By default that is the axis of a Softmax or LogSoftmax that computes the
      output; 1 in a matrix; the last of a product of matrices, as in [N,T,V] of a language model, and 1 of a
      convolution, as in images [N,C,H,W], also through elementwise operators; else the only axis but the
      first with a constant size. Where these leave a choice, `prepare` raises UnsupportedError.
    - Places whose label is `ignore_index` count for nothing; `IGNORED` is PyTorch's -100, and None ignores no
      label unless the type of the output fixes the size of a batch: it is -100 then, so that a batch can be
      filled. A batch in which all labels are ignored has the loss NaN.
    - `weights` has a factor for each class; the mean is divided by the sum of the factors of the labels.
    - `label_smoothing`, from 0 to 1, is the share of each label that is divided among all classes.

    >>> print(CrossEntropy(axis=-1).target(sabir.ir.tensor_type('float', ['N', 'T', 50])))
    int64[N,T]
    """

    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Raise UnsupportedError for numbers out of their range."""
        LabelLoss.__post_init__(self)
        check_number("label_smoothing", self.label_smoothing, most=1.0)

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        scores = self._in_axis_1(b, scores)
        weights = self._weights(b, scores)
        hard = self._mean(b, scores, target, weights)
        if not self.label_smoothing:
            return hard
        soft = self._of_all_classes(b, scores, target, weights)
        share = self.label_smoothing
        return b.Add(b.Mul(hard, number(b, scores, 1 - share)), b.Mul(soft, number(b, scores, share)))

    def _of_all_classes(self, b: Builder, scores: Value, target: Value, weights: Array | None) -> Value:
        """Build the loss of labels that are divided among all classes, each of its weight."""
        logs = b.LogSoftmax(scores, axis=1) if self.softmax else scores
        if weights is not None:
            logs = b.Mul(logs, weights.reshape(-1, *[1] * (rank_of(tensor_type_of(b, scores)) - 2)))
        losses = b.Neg(b.ReduceMean(logs, AXIS_1, keepdims=0))
        counted, factors = self.counted(b, target), self._factors(b, scores, target)
        if factors is None:
            return b.ReduceMean(losses, keepdims=0)
        if counted is not None:
            losses = b.Where(counted, losses, number(b, scores, 0))
        return _ratio(b, losses, factors)


@dataclass(frozen=True, slots=True)
class NegativeLogLikelihood(CrossEntropy):
    """The cross-entropy of classes where the output is logarithms of probabilities.

    The options are those of `CrossEntropy`.

    >>> print(NegativeLogLikelihood().target(sabir.ir.tensor_type('float', ['N', 3])))
    int64[N]
    """

    softmax: ClassVar[bool] = False
    operator: ClassVar[str] = "NegativeLogLikelihoodLoss"


@dataclass(frozen=True, slots=True)
class Focal(LabelLoss):
    """The cross-entropy of each label times `(1 - p) ** gamma`, where p is the probability of the label.

    So labels that are found already count less; with `gamma` 0 it is `CrossEntropy`, and `axis`,
    `ignore_index` and `weights` are as in that. `gamma` is 0, or 1 or more: below 1 the slope has no bound.

    >>> Focal().gamma
    2.0
    """

    gamma: float = 2.0

    def __post_init__(self) -> None:
        """Raise UnsupportedError for numbers out of their range."""
        LabelLoss.__post_init__(self)
        if self.gamma:
            check_number("a gamma of Focal that is not 0", self.gamma, least=1.0)

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        scores = self._in_axis_1(b, scores)
        if not self.gamma:
            return self._mean(b, scores, target, self._weights(b, scores))
        losses = b.op(self.operator, scores, target, reduction="none", **self._ignoring)
        missed = b.Sub(number(b, scores, 1), b.Exp(b.Neg(losses)))
        losses = b.Mul(losses, b.Pow(missed, number(b, scores, self.gamma)))
        factors = self._factors(b, scores, target)
        if factors is None:
            return b.ReduceMean(losses, keepdims=0)
        return _ratio(b, b.Mul(losses, factors), factors)


@dataclass(frozen=True, slots=True)
class Dice(LabelLoss):
    """One minus the Dice coefficient of probabilities and labels, the mean over the classes.

    The coefficient of a class is `(2 * sum(p * t) + smooth) / (sum(p) + sum(t) + smooth)`, with sums over the
    samples and places of the batch; p is the probability of the class, t is 1 where the label is the class,
    else 0. `axis` and `ignore_index` are as in `CrossEntropy`; `weights` are factors of the mean over the
    classes. Any other label that is no class is in no class. `smooth` is above 0, or a class that is nowhere
    would have no value.

    >>> print(Dice().target(sabir.ir.tensor_type('float', ['N', 3, 'H', 'W'])))
    int64[N,H,W]
    """

    smooth: float = 1.0

    def __post_init__(self) -> None:
        """Raise UnsupportedError for numbers out of their range."""
        LabelLoss.__post_init__(self)
        if not self.smooth > 0:
            raise UnsupportedError(f"the smooth of Dice is above 0; got {self.smooth}")

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        element = tensor_type_of(b, scores).element
        # sums of many places exceed float16, and bfloat16 does not count so far
        wide = scores if element.dtype.itemsize >= FLOAT.dtype.itemsize else b.Cast(scores, to=FLOAT.number)
        loss = self._of_wide(b, self._in_axis_1(b, wide), target)
        return loss if wide is scores else b.Cast(loss, to=element.number)

    def _of_wide(self, b: Builder, scores: Value, target: Value) -> Value:
        chances, truth = b.Softmax(scores, axis=1), self._truth(b, scores, target)
        counted = self.counted(b, target)
        if counted is not None:
            counts = b.Unsqueeze(b.Cast(counted, to=tensor_type_of(b, scores).element.number), AXIS_1)
            chances, truth = b.Mul(chances, counts), b.Mul(truth, counts)
        twice, smooth = b.Mul(chances, b.Add(truth, truth)), number(b, scores, self.smooth)
        upper = b.Add(_sum_of_classes(b, twice), smooth)
        lower = b.Add(_sum_of_classes(b, b.Add(chances, truth)), smooth)
        losses = b.Sub(number(b, scores, 1), b.Div(upper, lower))
        weights = self._weights(b, scores)
        if weights is None:
            return b.ReduceMean(losses, keepdims=0)
        return b.Div(b.ReduceSum(b.Mul(losses, weights), keepdims=0), weights.sum())

    def _truth(self, b: Builder, scores: Value, target: Value) -> Value:
        """Build 1 where the label is the class, else 0, in the type and shape of the scores."""
        kind = tensor_type_of(b, scores)
        count = b.Squeeze(b.Shape(scores, start=1, end=2))
        classes = b.Range(np.array(0, np.int64), count, np.array(1, np.int64))
        column = b.Reshape(classes, np.array([-1, *[1] * (rank_of(kind) - 2)]))
        return b.Cast(b.Equal(b.Unsqueeze(target, AXIS_1), column), to=kind.element.number)


@dataclass(frozen=True, slots=True)
class KLDivergence(ClassLoss):
    """The Kullback-Leibler divergence of distributions: the target has a probability for each class.

    It is the sum of `t * (log(t) - log(p))` over the classes, the mean over everything else: in a matrix
    PyTorch's KLDivLoss with "batchmean". The output is logits, or what a final Softmax computes; without
    `logits` it is logarithms of probabilities. `axis` is as in `CrossEntropy`.

    >>> print(KLDivergence().target(sabir.ir.tensor_type('float', ['N', 3])))
    float[N,3]
    """

    logits: bool = True

    def scores(self, output: Value) -> Value:
        return ClassLoss.scores(self, output) if self.logits else output

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        axis = self.axis_of(tensor_type_of(b, scores))
        logs = b.LogSoftmax(scores, axis=axis) if self.logits else scores
        possible = b.Greater(target, number(b, scores, 0))
        logs_of_target = b.Log(b.Where(possible, target, number(b, scores, 1)))  # 0 log 0 is 0
        parts = b.Mul(target, b.Sub(logs_of_target, logs))
        return b.ReduceMean(b.ReduceSum(parts, np.array([axis], np.int64), keepdims=0), keepdims=0)


@dataclass(frozen=True, slots=True)
class BinaryCrossEntropy(Loss):
    """The cross-entropy of truth values: the target is 1, 0, or a probability between them.

    The output is logits or, without `logits`, probabilities; the logarithms of these are taken for at least
    -100.

    >>> BinaryCrossEntropy().logits
    True
    """

    logits: bool = True

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        if self.logits:
            return b.ReduceMean(b.Sub(b.Softplus(scores), b.Mul(scores, target)), keepdims=0)
        one, least = number(b, scores, 1), number(b, scores, _LEAST_LOGARITHM)
        right = b.Mul(target, b.Max(b.Log(scores), least))
        wrong = b.Mul(b.Sub(one, target), b.Max(b.Log(b.Sub(one, scores)), least))
        return b.Neg(b.ReduceMean(b.Add(right, wrong), keepdims=0))

    @property
    def border(self) -> float:
        """The score above which an answer is 1."""
        return 0.0 if self.logits else 0.5

    def right(self, b: Builder, scores: Value, target: Value) -> tuple[Value, Value | None]:
        """Build which truth values are those that the scores say."""
        sure = b.Greater(target, number(b, scores, 0.5))
        return b.Equal(b.Greater(scores, number(b, scores, self.border)), sure), None


def _ratio(b: Builder, losses: Value, factors: Value) -> Value:
    """Build the ratio of two sums, by means: sums of many places exceed float16."""
    return b.Div(b.ReduceMean(losses, keepdims=0), b.ReduceMean(factors, keepdims=0))


def _sum_of_classes(b: Builder, values: Value) -> Value:
    """Build the sum for each class, which are along axis 1."""
    others = [i for i in range(rank_of(tensor_type_of(b, values))) if i != 1]
    return b.ReduceSum(values, np.array(others, np.int64), keepdims=0)


__all__ = [
    "IGNORED", "BinaryCrossEntropy", "CrossEntropy", "Dice", "Focal", "KLDivergence", "NegativeLogLikelihood",
]  # fmt: skip
