"""Losses of embeddings, vectors [N,D] that several outputs of a model have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import UnsupportedError
from sabir.ir import TensorType
from sabir.training._joint import JointLoss
from sabir.training._losses import check_number, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value

_FEATURES = np.array([1], np.int64)  # the axis
_LEAST_LENGTH = 1e-12  # of a vector that is divided by its length
_NEAR = 1e-6  # what PyTorch adds to differences, as a length of 0 has no slope
_MATRIX = 2  # the rank of embeddings


@dataclass(frozen=True, slots=True)
class _Embeddings(JointLoss):
    """A loss of embeddings; without a target, unless a class below has one."""

    @property
    def has_target(self) -> bool:
        return False

    def target(self, output: TensorType) -> TensorType:
        if output.shape is None or len(output.shape) != _MATRIX:
            raise UnsupportedError(f"{type(self).__name__} is of embeddings [N,D]; the output is {output}")
        return TensorType(output.element, output.shape[:1])


@dataclass(frozen=True, slots=True)
class Contrastive(_Embeddings):
    """The InfoNCE loss of pairs: row i of the output belongs to row i of `other`, and to no other row.

    It is the cross-entropy of the cosines of all pairs of rows, divided by `temperature`, with the labels 0
    to N-1; with `symmetric` the mean of both directions, as CLIP is trained. It has no target. A batch is
    one set of pairs, so larger batches have harder alternatives.

    Raises UnsupportedError unless `temperature` is above 0.

    >>> Contrastive('text').temperature
    0.07
    """

    other: str
    temperature: float = 0.07
    symmetric: bool = True

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a temperature that is not above 0."""
        if not 0 < self.temperature < np.inf:
            raise UnsupportedError(f"the temperature of Contrastive is above 0; got {self.temperature}")

    @property
    def others(self) -> tuple[str, ...]:
        return (self.other,)

    def build_of(self, b: Builder, values: Sequence[Value], target: Value | None) -> Value:
        del target
        one, other = (_of_length_one(b, value) for value in values)
        logits = b.Div(b.MatMul(one, b.Transpose(other, perm=[1, 0])), number(b, one, self.temperature))
        count = b.Squeeze(b.Shape(one, end=1))
        labels = b.Range(np.array(0, np.int64), count, np.array(1, np.int64))
        loss = b.SoftmaxCrossEntropyLoss(logits, labels, reduction="mean")
        if not self.symmetric:
            return loss
        back = b.SoftmaxCrossEntropyLoss(b.Transpose(logits, perm=[1, 0]), labels, reduction="mean")
        return b.Mul(b.Add(loss, back), number(b, one, 0.5))


@dataclass(frozen=True, slots=True)
class Triplet(_Embeddings):
    """The mean of `max(0, d(output, positive) - d(output, negative) + margin)`, with Euclidean distances.

    `positive` and `negative` are outputs of the model: embeddings of what is like the row of the output, and
    of what is not. With `swap` the distance of `positive` and `negative` counts where it is the smaller one.
    It has no target, and computes as PyTorch's TripletMarginLoss.

    Raises UnsupportedError for a negative margin.

    >>> Triplet('same', 'another').margin
    1.0
    """

    positive: str
    negative: str
    margin: float = 1.0
    swap: bool = False

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a margin below 0."""
        check_number("the margin of Triplet", self.margin)

    @property
    def others(self) -> tuple[str, ...]:
        return self.positive, self.negative

    def build_of(self, b: Builder, values: Sequence[Value], target: Value | None) -> Value:
        del target
        anchor, positive, negative = values
        far = _distance(b, anchor, negative)
        if self.swap:
            far = b.Min(far, _distance(b, positive, negative))
        excess = b.Add(b.Sub(_distance(b, anchor, positive), far), number(b, anchor, self.margin))
        return b.ReduceMean(b.Max(excess, number(b, anchor, 0)), keepdims=0)


@dataclass(frozen=True, slots=True)
class CosineEmbedding(_Embeddings):
    """The mean of `1 - c` where the target is 1, of `max(0, c - margin)` where it is -1; c is the cosine.

    The cosine is that of the rows of the output and of `other`. The target has the element type of the
    output, and a number for each row. It computes as PyTorch's CosineEmbeddingLoss.

    Raises UnsupportedError unless `margin` is from -1 to 1.

    >>> print(CosineEmbedding('other').target(sabir.ir.tensor_type('float', ['N', 8])))
    float[N]
    """

    other: str
    margin: float = 0.0

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a margin that no cosine is."""
        check_number("the margin of CosineEmbedding", self.margin, least=-1.0, most=1.0)

    @property
    def others(self) -> tuple[str, ...]:
        return (self.other,)

    @property
    def has_target(self) -> bool:
        return True

    def build_of(self, b: Builder, values: Sequence[Value], target: Value | None) -> Value:
        if target is None:
            raise UnsupportedError("CosineEmbedding compares with a target")
        one, other = values
        squares = [_product(b, value, value) for value in values]
        lengths = b.Sqrt(b.Mul(*(b.Add(square, number(b, one, _LEAST_LENGTH)) for square in squares)))
        cosine = b.Div(_product(b, one, other), lengths)
        alike = b.Sub(number(b, one, 1), cosine)
        unlike = b.Max(b.Sub(cosine, number(b, one, self.margin)), number(b, one, 0))
        return b.ReduceMean(b.Where(b.Greater(target, number(b, one, 0)), alike, unlike), keepdims=0)


def _of_length_one(b: Builder, rows: Value) -> Value:
    lengths = b.ReduceL2(rows, _FEATURES, keepdims=1)
    return b.Div(rows, b.Max(lengths, number(b, rows, _LEAST_LENGTH)))


def _distance(b: Builder, one: Value, other: Value) -> Value:
    return b.ReduceL2(b.Add(b.Sub(one, other), number(b, one, _NEAR)), _FEATURES, keepdims=0)


def _product(b: Builder, one: Value, other: Value) -> Value:
    return b.ReduceSum(b.Mul(one, other), _FEATURES, keepdims=0)


__all__ = ["Contrastive", "CosineEmbedding", "Triplet"]
