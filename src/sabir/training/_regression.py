"""Losses of numbers: the target has the type and the shape of the output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.base import UnsupportedError
from sabir.training._losses import Loss, check_number, number

if TYPE_CHECKING:
    from sabir.ir import Builder, Value


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
class Huber(Loss):
    """The mean of `d * d / 2` where the difference d is at most `delta`, else of `delta * (|d| - delta / 2)`.

    Raises UnsupportedError unless `delta` is above 0.

    >>> Huber().delta
    1.0
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a delta that is not above 0."""
        if not self.delta > 0:
            raise UnsupportedError(f"the delta of Huber is above 0; got {self.delta}")

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        return b.ReduceMean(_huber(b, scores, target, self.delta), keepdims=0)


@dataclass(frozen=True, slots=True)
class SmoothL1(Loss):
    """The mean of `d * d / (2 * beta)` where the difference d is at most `beta`, of `|d| - beta / 2` above.

    With `beta` 0 it is the mean absolute error. Raises UnsupportedError for a `beta` below 0.

    >>> SmoothL1(beta=0.5).beta
    0.5
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a beta below 0."""
        check_number("the beta of SmoothL1", self.beta)

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        if not self.beta:
            return MeanAbsoluteError().build(b, scores, target)
        parts = _huber(b, scores, target, self.beta)
        return b.Div(b.ReduceMean(parts, keepdims=0), number(b, scores, self.beta))


def _huber(b: Builder, scores: Value, target: Value, border: float) -> Value:
    """Build the terms of Huber's loss: with n = min(|d|, border) both branches are n * (|d| - n / 2)."""
    distance = b.Abs(b.Sub(scores, target))
    near = b.Min(distance, number(b, scores, border))
    return b.Mul(near, b.Sub(distance, b.Mul(near, number(b, scores, 0.5))))


__all__ = ["Huber", "MeanAbsoluteError", "MeanSquaredError", "SmoothL1"]
