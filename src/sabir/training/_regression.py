"""Losses of numbers: the target has the type and the shape of the output."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import ml_dtypes

from sabir.base import UnsupportedError
from sabir.ir import TensorType
from sabir.training._losses import Loss, check_number, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Builder, Value

_limits_of: Callable[[Any], Any] = ml_dtypes.finfo  # also of the types that numpy does not have
_SEVERAL = 2  # samples of a batch, so that there may be fewer


@dataclass(frozen=True, slots=True)
class NumberLoss(Loss):
    """A loss that is the mean of a function of differences; options as of `MeanSquaredError`."""

    ignore_value: float | None = field(default=None, kw_only=True)

    def of_output(self, output: Value, kind: TensorType) -> Self:
        """Return the loss; a batch of a fixed size may need targets that fill it."""
        size = kind.shape[0] if kind.shape else None
        if self.ignore_value is not None or not isinstance(size, int) or size < _SEVERAL:
            return self
        stored = output.type if isinstance(output.type, TensorType) else kind
        return replace(self, ignore_value=float(_limits_of(stored.element.dtype).min))

    @property
    def ignored(self) -> float | None:
        """The number of a target that counts for nothing."""
        return self.ignore_value

    def _difference(self, b: Builder, scores: Value, target: Value) -> Value:
        """Build the differences, 0 where a target does not count."""
        found, counted = b.Sub(scores, target), self.counted(b, target)
        return found if counted is None else b.Where(counted, found, number(b, scores, 0))

    def _mean(self, b: Builder, terms: Value, target: Value) -> Value:
        """Build the mean of the terms that count; those of differences of 0 are 0."""
        mean, counted = b.ReduceMean(terms, keepdims=0), self.counted(b, target)
        if counted is None:
            return mean
        return b.Div(mean, b.ReduceMean(b.CastLike(counted, terms), keepdims=0))


@dataclass(frozen=True, slots=True)
class MeanSquaredError(NumberLoss):
    """The mean of squared differences.

    An element whose target is `ignore_value`, which may be NaN, counts for nothing; by default all count.
    Where the type of the output fixes the size of a batch it is by default the lowest number of its type, so
    that `fit` can fill a batch.

    >>> print(MeanSquaredError().target(sabir.ir.tensor_type('double', [3])))
    double[3]
    """

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        difference = self._difference(b, scores, target)
        return self._mean(b, b.Mul(difference, difference), target)


@dataclass(frozen=True, slots=True)
class MeanAbsoluteError(NumberLoss):
    """The mean of absolute differences; `ignore_value` is as of `MeanSquaredError`.

    >>> print(MeanAbsoluteError().target(sabir.ir.tensor_type('float', [3])))
    float[3]
    """

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        return self._mean(b, b.Abs(self._difference(b, scores, target)), target)


@dataclass(frozen=True, slots=True)
class Huber(NumberLoss):
    """The mean of `d * d / 2` where the difference d is at most `delta`, else of `delta * (|d| - delta / 2)`.

    `ignore_value` is as of `MeanSquaredError`. Raises UnsupportedError unless `delta` is above 0.

    >>> Huber().delta
    1.0
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a delta that is not above 0."""
        if not self.delta > 0:
            raise UnsupportedError(f"the delta of Huber is above 0; got {self.delta}")

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        terms = _huber(b, self._difference(b, scores, target), self.delta)
        return self._mean(b, terms, target)


@dataclass(frozen=True, slots=True)
class SmoothL1(NumberLoss):
    """The mean of `d * d / (2 * beta)` where the difference d is at most `beta`, of `|d| - beta / 2` above.

    With `beta` 0 it is the mean absolute error; `ignore_value` is as of `MeanSquaredError`. Raises
    UnsupportedError for a `beta` below 0.

    >>> SmoothL1(beta=0.5).beta
    0.5
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a beta below 0."""
        check_number("the beta of SmoothL1", self.beta)

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        if not self.beta:
            return MeanAbsoluteError(ignore_value=self.ignore_value).build(b, scores, target)
        terms = _huber(b, self._difference(b, scores, target), self.beta)
        return b.Div(self._mean(b, terms, target), number(b, scores, self.beta))


def _huber(b: Builder, difference: Value, border: float) -> Value:
    """Build the terms of Huber's loss: with n = min(|d|, border) both branches are n * (|d| - n / 2)."""
    distance = b.Abs(difference)
    near = b.Min(distance, number(b, distance, border))
    return b.Mul(near, b.Sub(distance, b.Mul(near, number(b, distance, 0.5))))


__all__ = ["Huber", "MeanAbsoluteError", "MeanSquaredError", "NumberLoss", "SmoothL1"]
