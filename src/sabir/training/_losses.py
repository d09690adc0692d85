"""Losses and metrics: what a training model computes from an output and a target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sabir.base import UnsupportedError, quote
from sabir.elements import FLOAT, INT64
from sabir.ir import TensorType

if TYPE_CHECKING:
    from sabir.ir import Array, Builder, Type, Value

LOSS = "loss"  # the name of the loss in a prepared model
_LEAST_LOGARITHM = -100.0  # what PyTorch takes for the logarithm of 0


@dataclass(frozen=True, slots=True)
class Loss(ABC):
    """A loss of an output of the model and a target; the mean over the elements.

    >>> print(MeanSquaredError().target(sabir.ir.tensor_type('float', ['N', 2])))
    float[N,2]
    """

    def scores(self, output: Value) -> Value:
        """Return what the loss is computed from: the output, or what the model computes it from."""
        return output

    def target(self, output: TensorType) -> TensorType:
        """Return the type of the target for an output."""
        return TensorType(output.element, output.shape)

    @abstractmethod
    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        """Build the loss, a scalar."""

    def accuracy(self, b: Builder, scores: Value, target: Value) -> Value:
        """Build the share of right answers; raises UnsupportedError where none is right or wrong."""
        del b, scores, target
        raise UnsupportedError(f"the loss {type(self).__name__} has no accuracy")


@dataclass(frozen=True, slots=True)
class CrossEntropy(Loss):
    """The cross-entropy of classes: the target has the number of the right one, int64.

    The classes are along `axis` of the output. If a Softmax computes the output, the loss is computed from
    the operand of it, else the output is taken for logits.

    >>> print(CrossEntropy(axis=-1).target(sabir.ir.tensor_type('float', ['N', 'T', 50])))
    int64[N,T]
    """

    axis: int = 1
    operators: ClassVar[tuple[str, ...]] = ("Softmax",)
    loss_operator: ClassVar[str] = "SoftmaxCrossEntropyLoss"

    def scores(self, output: Value) -> Value:
        node = output.node
        first = None if node is None else node.inputs[0]
        return output if node is None or node.op not in self.operators or first is None else first

    def target(self, output: TensorType) -> TensorType:
        if output.shape is None or len(output.shape) <= self.axis or len(output.shape) < -self.axis:
            raise UnsupportedError(
                f"{type(self).__name__} needs the axis {self.axis}; the output is {output}"
            )
        shape = list(output.shape)
        del shape[self.axis]
        return TensorType(INT64, tuple(shape))

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        rank = _rank(b.type_of(scores))
        axis = self.axis % rank
        if axis != 1:
            order = [i for i in range(rank) if i != axis]
            scores = b.Transpose(scores, perm=[order[0], axis, *order[1:]])
        return b.op(self.loss_operator, scores, target, reduction="mean")

    def accuracy(self, b: Builder, scores: Value, target: Value) -> Value:
        return _share(b, b.Equal(b.ArgMax(scores, axis=self.axis, keepdims=0), target))


@dataclass(frozen=True, slots=True)
class NegativeLogLikelihood(CrossEntropy):
    """The cross-entropy of classes where the output is logarithms of probabilities.

    >>> NegativeLogLikelihood().axis
    1
    """

    operators: ClassVar[tuple[str, ...]] = ()
    loss_operator: ClassVar[str] = "NegativeLogLikelihoodLoss"


@dataclass(frozen=True, slots=True)
class MeanSquaredError(Loss):
    """The mean of squared differences.

    >>> print(MeanSquaredError().target(sabir.ir.tensor_type('double', [3])))
    double[3]
    """

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        difference = b.Sub(scores, target)
        return b.ReduceMean(b.Mul(difference, difference), keepdims=0)


@dataclass(frozen=True, slots=True)
class MeanAbsoluteError(Loss):
    """The mean of absolute differences.

    >>> print(MeanAbsoluteError().target(sabir.ir.tensor_type('float', [3])))
    float[3]
    """

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        return b.ReduceMean(b.Abs(b.Sub(scores, target)), keepdims=0)


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
        one, least = _number(b, scores, 1), _number(b, scores, _LEAST_LOGARITHM)
        right = b.Mul(target, b.Max(b.Log(scores), least))
        wrong = b.Mul(b.Sub(one, target), b.Max(b.Log(b.Sub(one, scores)), least))
        return b.Neg(b.ReduceMean(b.Add(right, wrong), keepdims=0))

    def accuracy(self, b: Builder, scores: Value, target: Value) -> Value:
        border = _number(b, scores, 0.0 if self.logits else 0.5)
        sure = b.Greater(target, _number(b, scores, 0.5))
        return _share(b, b.Equal(b.Greater(scores, border), sure))


LOSSES: dict[str, Loss] = {
    "cross_entropy": CrossEntropy(), "nll": NegativeLogLikelihood(), "mse": MeanSquaredError(),
    "mae": MeanAbsoluteError(), "bce_logits": BinaryCrossEntropy(), "bce": BinaryCrossEntropy(logits=False),
}  # fmt: skip
"""The losses by the names that `prepare` and `sabir train` know."""

METRICS = ("accuracy", "mse", "mae")


def metric(name: str, loss: Loss, b: Builder, scores: Value, target: Value) -> Value:
    """Build a metric by its name; raises UnsupportedError for one that does not exist for the loss."""
    if name == "accuracy":
        return loss.accuracy(b, scores, target)
    if name not in METRICS:
        raise UnsupportedError(f"there is no metric {quote(name)}; there are {', '.join(METRICS)}")
    return LOSSES[name].build(b, scores, target)


def _share(b: Builder, right: Value) -> Value:
    return b.ReduceMean(b.Cast(right, to=FLOAT.number), keepdims=0)


def _number(b: Builder, like: Value, value: float) -> Array:
    kind = b.type_of(like)
    return np.asarray(value, kind.element.dtype if isinstance(kind, TensorType) else np.float32)


def _rank(kind: Type | None) -> int:
    return len(kind.shape) if isinstance(kind, TensorType) and kind.shape is not None else 2


__all__ = [
    "LOSS", "LOSSES", "METRICS", "BinaryCrossEntropy", "CrossEntropy", "Loss", "MeanAbsoluteError",
    "MeanSquaredError", "NegativeLogLikelihood", "metric",
]  # fmt: skip
