"""Learning rates over the steps, as nodes of the graph: in double precision, from the number of the step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import DOUBLE

if TYPE_CHECKING:
    from sabir.ir import Builder, Value


@dataclass(frozen=True, slots=True)
class Schedule:
    """The learning rate of each step: `rate` times a factor that depends on the number of the step.

    The rate is a state variable of the training model, `learning_rate`, so that it can be read and set.

    >>> Schedule(0.1).rate
    0.1
    """

    rate: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate >= 0):
            raise UnsupportedError(f"a learning rate is a number, 0 or more; got {self.rate}")

    def factor(self, b: Builder, step: Value) -> Value | None:
        """Return the factor for a step, a scalar of double; steps count from 0. None: always 1."""
        del b, step
        return None


@dataclass(frozen=True, slots=True)
class Constant(Schedule):
    """The same learning rate in every step.

    >>> Constant(0.1).rate
    0.1
    """


@dataclass(frozen=True, slots=True)
class _Decay(Schedule):
    """A rate that rises for `warmup` steps, and then falls until step `steps` to `end`."""

    steps: int
    warmup: int = 0
    end: float = 0.0

    def __post_init__(self) -> None:
        Schedule.__post_init__(self)
        if not 0 <= self.warmup < self.steps:
            raise UnsupportedError(f"a warmup of {self.warmup} steps does not fit in {self.steps} steps")

    def factor(self, b: Builder, step: Value) -> Value:
        last = self.end / self.rate if self.rate else 1.0
        done = b.Div(b.Sub(step, np.float64(self.warmup)), np.float64(self.steps - self.warmup))
        left = self._left(b, b.Clip(done, np.float64(0), np.float64(1)))
        falling = b.Add(b.Mul(left, np.float64(1 - last)), np.float64(last))
        if not self.warmup:
            return falling
        rising = b.Div(b.Add(step, np.float64(1)), np.float64(self.warmup))
        return b.Where(b.Less(step, np.float64(self.warmup)), rising, falling)

    def _left(self, b: Builder, done: Value) -> Value:
        """Return how much of the fall is left, from 1 to 0, when a share of the steps is done."""
        return b.Sub(np.float64(1), done)


@dataclass(frozen=True, slots=True)
class Linear(_Decay):
    """A rate that rises for `warmup` steps, and falls in a line until step `steps` to `end`.

    >>> Linear(0.1, 1000, warmup=50).steps
    1000
    """


@dataclass(frozen=True, slots=True)
class Cosine(_Decay):
    """A rate that rises for `warmup` steps, and falls as half a wave until step `steps` to `end`.

    >>> Cosine(1e-3, 2000, warmup=100).warmup
    100
    """

    def _left(self, b: Builder, done: Value) -> Value:
        wave = b.Cos(b.Mul(done, np.float64(math.pi)))
        return b.Mul(b.Add(wave, np.float64(1)), np.float64(0.5))


@dataclass(frozen=True, slots=True)
class Step(Schedule):
    """A rate that is multiplied by `factor_each` after every `every` steps.

    >>> Step(0.1, every=30).factor_each
    0.1
    """

    every: int
    factor_each: float = 0.1

    def __post_init__(self) -> None:
        Schedule.__post_init__(self)
        if self.every < 1:
            raise UnsupportedError(f"a rate changes after 1 step or more; got every={self.every}")

    def factor(self, b: Builder, step: Value) -> Value:
        return b.Pow(np.float64(self.factor_each), b.Floor(b.Div(step, np.float64(self.every))))


def rate_of(b: Builder, schedule: Schedule, base: Value, step: Value) -> Value:
    """Return the rate of a step, a scalar of double; `step` is the number of steps before it, int64."""
    factor = schedule.factor(b, b.Cast(step, to=DOUBLE.number))
    return base if factor is None else b.Mul(base, factor)


__all__ = ["Constant", "Cosine", "Linear", "Schedule", "Step", "rate_of"]
