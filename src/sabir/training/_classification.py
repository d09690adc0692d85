"""Losses of classes and of truth values."""

from __future__ import annotations

from collections.abc import Sequence  # ruff: ignore[typing-only-standard-library-import]  of a field
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import BOOL, FLOAT, INT64
from sabir.ir import TensorType, canonical_domain
from sabir.training._class_axis import axis_of_softmax, class_axis
from sabir.training._losses import Loss, check_number, dtype_of, number

if TYPE_CHECKING:
    from sabir.ir import Array, Builder, Value

IGNORED = -100  # the label that PyTorch ignores
_AXIS_1 = np.array([1], np.int64)
_LEAST_LOGARITHM = -100.0  # what PyTorch takes for the logarithm of 0


@dataclass(frozen=True, slots=True)
class ClassLoss(Loss):
    """A loss of scores of classes, which are along an axis of the output.

    `axis` is that axis, or None: then it is found. A Softmax or LogSoftmax that computes the output has it as
    its axis. In a matrix it is axis 1. In an output of higher rank it is the last axis of a product of
    matrices, as in [N,T,V] of a language model, and axis 1 of a convolution, as in images [N,C,H,W], also
    through elementwise operators; else the only axis but the first that has a constant size. UnsupportedError
    where these leave a choice.

    If a Softmax computes the output, the scores are the operand of it, else the output is taken for logits.
    """

    axis: int | None = None
    softmax: ClassVar[bool] = True  # the scores are what a Softmax reads

    def of_output(self, output: Value, kind: TensorType) -> Self:
        if self.axis is None:
            return replace(self, axis=class_axis(kind, output))
        self._axis(kind)
        found = axis_of_softmax(output, _rank(kind))
        if found is not None and found != self._axis(kind):
            raise UnsupportedError(
                f"a Softmax along axis {found} computes the output, and the loss has axis {self.axis}"
            )
        return self

    def scores(self, output: Value) -> Value:
        node = output.node if self.softmax else None
        if node is None or node.op != "Softmax" or canonical_domain(node.domain):
            return output
        return node.inputs[0] or output

    def _axis(self, kind: TensorType) -> int:
        """Return the axis of the classes, from 0; raises UnsupportedError."""
        if self.axis is None:
            return class_axis(kind)
        rank = 0 if kind.shape is None else len(kind.shape)
        if not -rank <= self.axis < rank:
            raise UnsupportedError(f"{type(self).__name__} needs the axis {self.axis}; the output is {kind}")
        return self.axis % rank

    def _in_axis_1(self, b: Builder, scores: Value) -> Value:
        """Build the scores with the classes in axis 1."""
        kind = _tensor(b, scores)
        axis = self._axis(kind)
        if axis == 1:
            return scores
        order = [i for i in range(_rank(kind)) if i != axis]
        return b.Transpose(scores, perm=[order[0], axis, *order[1:]])


@dataclass(frozen=True, slots=True)
class LabelLoss(ClassLoss):
    """A loss of scores of classes where the target has the number of the right one, int64.

    Places whose label is `ignore_index` (`IGNORED` is the -100 of PyTorch; None: no label is ignored) count
    for nothing. `weights` has a factor for each class: the mean is divided by the sum of the factors of the
    labels. A batch in which all labels are ignored has the loss NaN.
    """

    ignore_index: int | None = None
    weights: Sequence[float] | None = None
    operator: ClassVar[str] = "SoftmaxCrossEntropyLoss"

    def __post_init__(self) -> None:
        """Raise UnsupportedError for weights that are not numbers of 0 or more."""
        for weight in () if self.weights is None else self.weights:
            check_number("a weight of a class", weight)

    def target(self, output: TensorType) -> TensorType:
        axis = self._axis(output)
        shape = list(output.shape or ())
        size = shape.pop(axis)
        if self.weights is not None and isinstance(size, int) and size != len(self.weights):
            raise UnsupportedError(
                f"there are {len(self.weights)} weights and {size} classes; the output is {output}"
            )
        return TensorType(INT64, tuple(shape))

    def accuracy(self, b: Builder, scores: Value, target: Value) -> Value:
        scores = self._in_axis_1(b, scores)
        return self.share(b, b.Equal(b.ArgMax(scores, axis=1, keepdims=0), target), target)

    def top(self, b: Builder, scores: Value, target: Value, k: int) -> Value:
        """Build the share of labels that are among the k classes with the highest scores."""
        scores = self._in_axis_1(b, scores)
        shape = _tensor(b, scores).shape or ()
        classes = shape[1] if len(shape) > 1 else None
        if isinstance(classes, int) and k > classes:
            raise UnsupportedError(f"the metric top_{k} needs {k} classes; there are {classes}")
        _, best = b.TopK(scores, np.array([k], np.int64), axis=1)
        found = b.Cast(b.Equal(best, b.Unsqueeze(target, _AXIS_1)), to=INT64.number)
        return self.share(b, b.Cast(b.ReduceMax(found, _AXIS_1, keepdims=0), to=BOOL.number), target)

    def perplexity(self, b: Builder, scores: Value, target: Value) -> Value:
        """Build e to the power of the mean cross-entropy, without weights."""
        return b.Exp(_mean(b, self.operator, self._in_axis_1(b, scores), target, self.ignore_index, None))

    def share(self, b: Builder, right: Value, target: Value) -> Value:
        """Build the share of truth values among those whose label counts."""
        counted = self._counted(b, target)
        if counted is None:
            return _share(b, right)
        number_right = b.ReduceSum(b.Cast(b.And(right, counted), to=FLOAT.number), keepdims=0)
        return b.Div(number_right, b.ReduceSum(b.Cast(counted, to=FLOAT.number), keepdims=0))

    def _counted(self, b: Builder, target: Value) -> Value | None:
        """Build where a label counts, None where all count."""
        ignored = self.ignore_index
        return None if ignored is None else b.Not(b.Equal(target, np.array(ignored, np.int64)))

    def _factors(self, b: Builder, scores: Value, target: Value) -> Value | None:
        """Build the factor of each label: its weight, 0 where it is ignored; None where all are 1."""
        counted, weights = self._counted(b, target), self._weights(b, scores)
        if counted is None:
            return None if weights is None else b.Gather(weights, target)
        one = b.Cast(counted, to=_tensor(b, scores).element.number)
        if weights is None:
            return one
        return b.Mul(one, b.Gather(weights, b.Where(counted, target, np.array(0, np.int64))))

    def _weights(self, b: Builder, scores: Value) -> Array | None:
        return None if self.weights is None else np.asarray(self.weights, dtype_of(b, scores))


@dataclass(frozen=True, slots=True)
class CrossEntropy(LabelLoss):
    """The cross-entropy of classes: the target has the number of the right one, int64.

    `axis`, by default found, `ignore_index` and `weights` are as in `ClassLoss` and `LabelLoss`. With
    `label_smoothing`, from 0 to 1, that share of each label is divided among all classes. All are as in
    PyTorch's CrossEntropyLoss with a mean.

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
        hard = _mean(b, self.operator, scores, target, self.ignore_index, weights)
        if not self.label_smoothing:
            return hard
        soft = self._of_all_classes(b, scores, target, weights)
        share = self.label_smoothing
        return b.Add(b.Mul(hard, number(b, scores, 1 - share)), b.Mul(soft, number(b, scores, share)))

    def _of_all_classes(self, b: Builder, scores: Value, target: Value, weights: Array | None) -> Value:
        """Build the loss of labels that are divided among all classes, each of its weight."""
        logs = b.LogSoftmax(scores, axis=1) if self.softmax else scores
        if weights is not None:
            logs = b.Mul(logs, weights.reshape(-1, *[1] * (_rank(_tensor(b, scores)) - 2)))
        losses = b.Neg(b.ReduceMean(logs, _AXIS_1, keepdims=0))
        counted, factors = self._counted(b, target), self._factors(b, scores, target)
        if factors is None:
            return b.ReduceMean(losses, keepdims=0)
        if counted is not None:
            losses = b.Where(counted, losses, number(b, scores, 0))
        return b.Div(b.ReduceSum(losses, keepdims=0), b.ReduceSum(factors, keepdims=0))


@dataclass(frozen=True, slots=True)
class NegativeLogLikelihood(CrossEntropy):
    """The cross-entropy of classes where the output is logarithms of probabilities.

    >>> print(NegativeLogLikelihood().target(sabir.ir.tensor_type('float', ['N', 3])))
    int64[N]
    """

    softmax: ClassVar[bool] = False
    operator: ClassVar[str] = "NegativeLogLikelihoodLoss"


@dataclass(frozen=True, slots=True)
class Focal(LabelLoss):
    """The cross-entropy of each label times `(1 - p) ** gamma`, where p is the probability of the label.

    So labels that are found already count less; with `gamma` 0 it is `CrossEntropy`, and `weights` and
    `ignore_index` are as in that. `gamma` is 0, or 1 or more: below 1 the slope has no bound.

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
            return _mean(b, self.operator, scores, target, self.ignore_index, self._weights(b, scores))
        ignored: dict[str, Any] = {} if self.ignore_index is None else {"ignore_index": self.ignore_index}
        losses = b.op(self.operator, scores, target, reduction="none", **ignored)
        missed = b.Sub(number(b, scores, 1), b.Exp(b.Neg(losses)))
        losses = b.Mul(losses, b.Pow(missed, number(b, scores, self.gamma)))
        factors = self._factors(b, scores, target)
        if factors is None:
            return b.ReduceMean(losses, keepdims=0)
        return b.Div(b.ReduceSum(b.Mul(losses, factors), keepdims=0), b.ReduceSum(factors, keepdims=0))


@dataclass(frozen=True, slots=True)
class Dice(LabelLoss):
    """One minus the Dice coefficient of probabilities and labels, the mean over the classes.

    The coefficient of a class is `(2 * sum(p * t) + smooth) / (sum(p) + sum(t) + smooth)`, with sums over the
    samples and places of the batch; p is the probability of the class, t is 1 where the label is the class,
    else 0. `weights` are factors of the mean over the classes. Labels that are no class and not
    `ignore_index` are those of no class. `smooth` is above 0, or a class that is nowhere would have no value.

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
        scores = self._in_axis_1(b, scores)
        chances, truth = b.Softmax(scores, axis=1), self._truth(b, scores, target)
        counted = self._counted(b, target)
        if counted is not None:
            counts = b.Unsqueeze(b.Cast(counted, to=_tensor(b, scores).element.number), _AXIS_1)
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
        kind = _tensor(b, scores)
        count = b.Squeeze(b.Shape(scores, start=1, end=2))
        classes = b.Range(np.array(0, np.int64), count, np.array(1, np.int64))
        column = b.Reshape(classes, np.array([-1, *[1] * (_rank(kind) - 2)]))
        return b.Cast(b.Equal(b.Unsqueeze(target, _AXIS_1), column), to=kind.element.number)


@dataclass(frozen=True, slots=True)
class KLDivergence(ClassLoss):
    """The Kullback-Leibler divergence of distributions: the target has a probability for each class.

    It is the sum of `t * (log(t) - log(p))` over the classes, the mean over everything else: in a matrix
    PyTorch's KLDivLoss with "batchmean". The output is logits, or what a final Softmax computes; without
    `logits` it is logarithms of probabilities. `axis` is as in `ClassLoss`.

    >>> print(KLDivergence().target(sabir.ir.tensor_type('float', ['N', 3])))
    float[N,3]
    """

    logits: bool = True

    def scores(self, output: Value) -> Value:
        return ClassLoss.scores(self, output) if self.logits else output

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        axis = self._axis(_tensor(b, scores))
        logs = b.LogSoftmax(scores, axis=axis) if self.logits else scores
        least = np.asarray(np.finfo(dtype_of(b, scores)).tiny)
        parts = b.Mul(target, b.Sub(b.Log(b.Max(target, least)), logs))
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

    def accuracy(self, b: Builder, scores: Value, target: Value) -> Value:
        border = number(b, scores, 0.0 if self.logits else 0.5)
        sure = b.Greater(target, number(b, scores, 0.5))
        return _share(b, b.Equal(b.Greater(scores, border), sure))


def _mean(
    b: Builder, operator: str, scores: Value, target: Value, ignored: int | None, weights: Array | None
) -> Value:
    """Build the weighted mean of the losses of labels by an operator of the standard."""
    options: dict[str, Any] = {} if ignored is None else {"ignore_index": ignored}
    operands = (scores, target) if weights is None else (scores, target, weights)
    return b.op(operator, *operands, reduction="mean", **options)


def _sum_of_classes(b: Builder, values: Value) -> Value:
    """Build the sum for each class, which are along axis 1."""
    others = [i for i in range(_rank(_tensor(b, values))) if i != 1]
    return b.ReduceSum(values, np.array(others, np.int64), keepdims=0)


def _share(b: Builder, right: Value) -> Value:
    return b.ReduceMean(b.Cast(right, to=FLOAT.number), keepdims=0)


def _tensor(b: Builder, value: Value) -> TensorType:
    kind = b.type_of(value)
    if not isinstance(kind, TensorType):
        raise UnsupportedError(f"the scores are {kind or 'of unknown type'}; the classes need a tensor")
    return kind


def _rank(kind: TensorType) -> int:
    return len(kind.shape or ())


__all__ = [
    "IGNORED", "BinaryCrossEntropy", "ClassLoss", "CrossEntropy", "Dice", "Focal", "KLDivergence",
    "LabelLoss", "NegativeLogLikelihood",
]  # fmt: skip
