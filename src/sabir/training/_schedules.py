"""Learning rates over the steps, as nodes of the graph: in double precision, from the number of the step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
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
        return _wave(b, done, 1, 0)


@dataclass(frozen=True, slots=True)
class Polynomial(_Decay):
    """A rate that rises for `warmup` steps, and falls until step `steps` to `end` by a power of what is left.

    >>> Polynomial(0.1, 1000, power=3).power
    3
    """

    power: float = field(default=2.0, kw_only=True)

    def __post_init__(self) -> None:
        _Decay.__post_init__(self)
        if not (math.isfinite(self.power) and self.power > 0):
            raise UnsupportedError(f"the power of a polynomial is a number above 0; got {self.power}")

    def _left(self, b: Builder, done: Value) -> Value:
        return b.Pow(b.Sub(np.float64(1), done), np.float64(self.power))


@dataclass(frozen=True, slots=True)
class OneCycle(Schedule):
    """One cycle, as in PyTorch: half a wave up to `rate` in a share `rise` of the steps, and one down.

    It begins with `rate / first`, and its last step has `rate / first / last`, as have all later ones.

    >>> OneCycle(0.1, 1000).rise
    0.3
    """

    steps: int
    rise: float = 0.3
    first: float = 25.0
    last: float = 1e4

    def __post_init__(self) -> None:
        Schedule.__post_init__(self)
        if not (0 < self.rise < 1 and self.rise * self.steps > 1):
            raise UnsupportedError(f"a rise in {self.rise:g} of {self.steps} steps is not one step or more")
        if not (1 <= self.first < math.inf and 1 <= self.last < math.inf):
            raise UnsupportedError(
                f"first and last divide a rate and are 1 or more; got {self.first} and {self.last}"
            )

    def factor(self, b: Builder, step: Value) -> Value:
        top = self.rise * self.steps - 1
        up = _wave(b, b.Div(step, np.float64(top)), 1 / self.first, 1)
        done = b.Div(b.Sub(step, np.float64(top)), np.float64(self.steps - 1 - top))
        down = _wave(b, done, 1, 1 / self.first / self.last)
        return b.Where(b.LessOrEqual(step, np.float64(top)), up, down)


def _wave(b: Builder, done: Value, start: float, end: float) -> Value:
    """Return a number on half a wave from `start` to `end`, when a share of it is done."""
    done = b.Clip(done, np.float64(0), np.float64(1))
    left = b.Mul(b.Add(b.Cos(b.Mul(done, np.float64(math.pi))), np.float64(1)), np.float64(0.5))
    return b.Add(b.Mul(left, np.float64(start - end)), np.float64(end))


@dataclass(frozen=True, slots=True)
class WarmUp(Schedule):
    """Any schedule, after `steps` steps in which the rate rises in a line to the first one of the schedule.

    >>> WarmUp(Step(0.1, every=30), 5).rate
    0.1
    """

    rate: float = field(init=False)
    schedule: Schedule
    steps: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", self.schedule.rate)
        if self.steps < 1:
            raise UnsupportedError(f"a warm-up takes 1 step or more; got {self.steps}")

    def factor(self, b: Builder, step: Value) -> Value:
        steps = np.float64(self.steps)
        risen = b.Min(b.Div(b.Add(step, np.float64(1)), steps), np.float64(1))
        inner = self.schedule.factor(b, b.Max(b.Sub(step, steps), np.float64(0)))
        return risen if inner is None else b.Mul(risen, inner)


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


__all__ = [
    "Constant", "Cosine", "Linear", "OneCycle", "Polynomial", "Schedule", "Step", "WarmUp", "rate_of",
]  # fmt: skip
