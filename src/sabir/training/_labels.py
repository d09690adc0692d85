"""What losses of classes share: the axis of the classes, labels that count, and the metrics of labels."""

from __future__ import annotations

from collections.abc import Sequence  # ruff: ignore[typing-only-standard-library-import]  of a field
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import INT64
from sabir.ir import TensorType, canonical_domain
from sabir.training._class_axis import axis_of_softmax, class_axis
from sabir.training._losses import Loss, check_number, dtype_of
from sabir.training._streamed import StreamedMetric, ratio_of

if TYPE_CHECKING:
    from sabir.ir import Array, Builder, Value

AXIS_1 = np.array([1], np.int64)
IGNORED = -100  # the label that PyTorch ignores


@dataclass(frozen=True, slots=True)
class ClassLoss(Loss):
    """A loss of scores of classes, which are along `axis` of the output, by default as `class_axis` finds it.

    If a Softmax computes the output, the scores are the operand of it, else the output is taken for logits.
    """

    axis: int | None = None
    softmax: ClassVar[bool] = True  # the scores are what a Softmax reads

    def of_output(self, output: Value, kind: TensorType) -> Self:
        """Return the loss with its axis; raises UnsupportedError where a Softmax has another one."""
        if self.axis is None:
            return replace(self, axis=class_axis(kind, output))
        self.axis_of(kind)
        found = axis_of_softmax(output, rank_of(kind))
        if found is not None and found != self.axis_of(kind):
            raise UnsupportedError(
                f"a Softmax along axis {found} computes the output, and the loss has axis {self.axis}"
            )
        return self

    def scores(self, output: Value) -> Value:
        node = output.node if self.softmax else None
        if node is None or node.op != "Softmax" or canonical_domain(node.domain):
            return output
        return node.inputs[0] or output

    def axis_of(self, kind: TensorType) -> int:
        """Return the axis of the classes in an output of a type, from 0; raises UnsupportedError."""
        if self.axis is None:
            return class_axis(kind)
        rank = 0 if kind.shape is None else len(kind.shape)
        if not -rank <= self.axis < rank:
            raise UnsupportedError(f"{type(self).__name__} needs the axis {self.axis}; the output is {kind}")
        return self.axis % rank

    def _in_axis_1(self, b: Builder, scores: Value) -> Value:
        """Build the scores with the classes in axis 1."""
        kind = tensor_type_of(b, scores)
        axis = self.axis_of(kind)
        if axis == 1:
            return scores
        order = [i for i in range(rank_of(kind)) if i != axis]
        return b.Transpose(scores, perm=[order[0], axis, *order[1:]])


@dataclass(frozen=True, slots=True)
class LabelLoss(ClassLoss):
    """A loss of classes where the target has the number of the right one; options as of `CrossEntropy`."""

    ignore_index: int | None = None
    weights: Sequence[float] | None = None
    operator: ClassVar[str] = "SoftmaxCrossEntropyLoss"

    def __post_init__(self) -> None:
        """Raise UnsupportedError for weights that are not numbers of 0 or more."""
        for weight in () if self.weights is None else self.weights:
            check_number("a weight of a class", weight)

    def of_output(self, output: Value, kind: TensorType) -> Self:
        """Return the loss with its axis; a batch of a fixed size may need labels that fill it."""
        size = kind.shape[0] if kind.shape else None
        fills = isinstance(size, int) and size > 1 and self.ignore_index is None
        return super(LabelLoss, replace(self, ignore_index=IGNORED) if fills else self).of_output(
            output, kind
        )

    def target(self, output: TensorType) -> TensorType:
        axis = self.axis_of(output)
        shape = list(output.shape or ())
        size = shape.pop(axis)
        if self.weights is not None and isinstance(size, int) and size != len(self.weights):
            raise UnsupportedError(
                f"there are {len(self.weights)} weights and {size} classes; the output is {output}"
            )
        return TensorType(INT64, tuple(shape))

    def right(self, b: Builder, scores: Value, target: Value) -> tuple[Value, Value | None]:
        """Build which labels are the class with the highest score, and which labels count."""
        axis = self.axis_of(tensor_type_of(b, scores))
        return b.Equal(b.ArgMax(scores, axis=axis, keepdims=0), target), self.counted(b, target)

    def top(self, b: Builder, scores: Value, target: Value, k: int) -> tuple[Value, Value | None]:
        """Build which labels are among the k classes with the highest scores, and which labels count."""
        kind = tensor_type_of(b, scores)
        axis = self.axis_of(kind)
        classes = None if kind.shape is None else kind.shape[axis]
        if isinstance(classes, int) and k > classes:
            raise UnsupportedError(f"the metric top_{k} needs {k} classes; there are {classes}")
        _, best = b.TopK(scores, np.array([k], np.int64), axis=axis)
        places = np.array([axis], np.int64)
        found = b.Cast(b.Equal(best, b.Unsqueeze(target, places)), to=INT64.number)
        return b.ReduceMax(found, places, keepdims=0), self.counted(b, target)

    def perplexity(self) -> StreamedMetric:
        """Return the metric e to the power of the mean cross-entropy, without weights."""
        mean = ratio_of(self._cross_entropies)
        return StreamedMetric(mean.sums, lambda b, sums: b.Exp(mean.value(b, sums)))

    def _cross_entropies(self, b: Builder, scores: Value, target: Value) -> tuple[Value, Value | None]:
        """Build the cross-entropy of each label, and which labels count."""
        scores = self._in_axis_1(b, scores)
        losses = b.op(self.operator, scores, target, reduction="none", **self._ignoring)
        return losses, self.counted(b, target)

    def _mean(self, b: Builder, scores: Value, target: Value, weights: Array | None) -> Value:
        """Build the weighted mean of the cross-entropies of labels by an operator of the standard."""
        operands = (scores, target) if weights is None else (scores, target, weights)
        return b.op(self.operator, *operands, reduction="mean", **self._ignoring)

    @property
    def _ignoring(self) -> dict[str, Any]:
        """The attribute that an operator of the standard has for labels to ignore."""
        return {} if self.ignore_index is None else {"ignore_index": self.ignore_index}

    @property
    def ignored(self) -> int | None:
        """The label that counts for nothing."""
        return self.ignore_index

    def _factors(self, b: Builder, scores: Value, target: Value) -> Value | None:
        """Build the factor of each label: its weight, 0 where it is ignored; None where all are 1."""
        counted, weights = self.counted(b, target), self._weights(b, scores)
        if counted is None:
            return None if weights is None else b.Gather(weights, target)
        one = b.Cast(counted, to=tensor_type_of(b, scores).element.number)
        if weights is None:
            return one
        return b.Mul(one, b.Gather(weights, b.Where(counted, target, np.array(0, np.int64))))

    def _weights(self, b: Builder, scores: Value) -> Array | None:
        return None if self.weights is None else np.asarray(self.weights, dtype_of(b, scores))


def tensor_type_of(b: Builder, value: Value) -> TensorType:
    """Return the type of scores; raises UnsupportedError where it is unknown or no tensor's."""
    kind = b.type_of(value)
    if not isinstance(kind, TensorType):
        raise UnsupportedError(f"the scores are {kind or 'of unknown type'}; the classes need a tensor")
    return kind


def rank_of(kind: TensorType) -> int:
    """Return the rank of a type whose shape is known."""
    return len(kind.shape or ())


__all__ = [
    "AXIS_1", "IGNORED", "ClassLoss", "LabelLoss", "rank_of", "tensor_type_of",
]  # fmt: skip
