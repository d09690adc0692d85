"""Optimizers beyond Adam: other averages of gradients, and steps scaled to the norm of a parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.training._optimizers import Optimizer, Slot, check_number

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.training._optimizers import Moment, Parameter


@dataclass(frozen=True, slots=True)
class RMSprop(Optimizer):
    """RMSprop as in PyTorch; `weight_decay` is part of the gradient.

    `alpha` is how much of the average of squares a step keeps. With `centered` the squares are those of the
    difference to the average of the gradients.

    >>> list(RMSprop(1e-2, momentum=0.9).slots())
    ['squares', 'momentum']
    """

    alpha: float = 0.99
    eps: float = 1e-8
    momentum: float = 0.0
    centered: bool = False

    def __post_init__(self) -> None:
        Optimizer.__post_init__(self)
        check_number("alpha", self.alpha, below=1)

    def slots(self) -> dict[str, float]:
        wanted = {"squares": True, "mean": self.centered, "momentum": self.momentum > 0}
        return {name: 0.0 for name, present in wanted.items() if present}

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        b, gradient = moment.b, self.decayed(moment.b, x)
        slots = {"squares": x.mixed(b, x.slots["squares"], b.Mul(gradient, gradient), self.alpha)}
        variance = slots["squares"]
        if self.centered:
            slots["mean"] = x.mixed(b, x.slots["mean"], gradient, self.alpha)
            # rounding may leave less than 0
            variance = b.Max(b.Sub(variance, b.Mul(slots["mean"], slots["mean"])), x.number(0))
        step = b.Div(gradient, b.Add(b.Sqrt(variance), x.number(self.eps)))
        if self.momentum:
            step = b.Add(b.Mul(x.slots["momentum"], x.number(self.momentum)), step)
            slots["momentum"] = step
        return b.Sub(x.value, b.Mul(step, moment.scaled_rate(x.scale, x.element))), slots


@dataclass(frozen=True, slots=True)
class Lion(Optimizer):
    """Lion (Chen et al. 2023): a step of the same length for each element, by the sign of a moving average.

    `weight_decay` is no part of the gradient. Rates are smaller than those of Adam, often a tenth.

    >>> list(Lion(1e-4).slots())
    ['mean']
    """

    betas: tuple[float, float] = (0.9, 0.99)

    def slots(self) -> dict[str, float]:
        return {"mean": 0.0}

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        b, (first, second), mean = moment.b, self.betas, x.slots["mean"]
        direction = b.Sign(x.mixed(b, mean, x.gradient, first))
        moved = b.Sub(x.decayed(moment), b.Mul(direction, moment.scaled_rate(x.scale, x.element)))
        return moved, {"mean": x.mixed(b, mean, x.gradient, second)}


@dataclass(frozen=True, slots=True)
class _Moments(Optimizer):
    """An optimizer with moving averages of the gradients and of their squares."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def slots(self) -> dict[str, float]:
        return {"mean": 0.0, "squares": 0.0}

    def _moments(self, b: Builder, x: Parameter, gradient: Value) -> tuple[Value, Value]:
        """Build the new averages of a gradient and of its squares."""
        mean, squares = x.slots["mean"], x.slots["squares"]
        first, second = self.betas
        return x.mixed(b, mean, gradient, first), x.mixed(b, squares, b.Mul(gradient, gradient), second)


@dataclass(frozen=True, slots=True)
class AdaBelief(_Moments):
    """AdaBelief (Zhuang et al. 2020): Adam with the squared distance of gradients to their average.

    `weight_decay` is no part of the gradient.

    >>> list(AdaBelief(1e-3).slots())
    ['mean', 'squares']
    """

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        b, (first, second) = moment.b, self.betas
        mean = x.mixed(b, x.slots["mean"], x.gradient, first)
        surprise = b.Sub(x.gradient, mean)
        squares = x.mixed(b, x.slots["squares"], b.Mul(surprise, surprise), second)
        squares = b.Add(squares, x.number(self.eps))
        root = b.Mul(b.Sqrt(squares), moment.inverse_root_of_bias(second, x.element))
        step = b.Div(mean, b.Add(root, x.number(self.eps)))
        moved = b.Sub(x.decayed(moment), b.Mul(step, moment.corrected_rate(x.scale, first, x.element)))
        return moved, {"mean": mean, "squares": squares}


@dataclass(frozen=True, slots=True)
class LAMB(_Moments):
    """LAMB (You et al. 2019): a step of Adam that is scaled to the norm of the parameter, for large batches.

    The step and the decay of the weights together get the length of the parameter times the rate. A parameter
    or a step of zeros is not scaled.

    >>> LAMB(1e-3).eps
    1e-06
    """

    eps: float = 1e-6

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        b, (first, second) = moment.b, self.betas
        mean, squares = self._moments(b, x, x.gradient)
        root = b.Mul(b.Sqrt(squares), moment.inverse_root_of_bias(second, x.element))
        bias = moment.scalar(x.element, lambda: moment.bias(first), "bias", first)
        step = b.Div(b.Div(mean, bias), b.Add(root, x.number(self.eps)))
        if x.weight_decay:
            step = b.Add(step, b.Mul(x.value, x.number(x.weight_decay)))
        rate = b.Mul(moment.scaled_rate(x.scale, x.element), _trust(b, x, step))
        return b.Sub(x.value, b.Mul(step, rate)), {"mean": mean, "squares": squares}


def _trust(b: Builder, x: Parameter, step: Value) -> Value:
    """Return the norm of a parameter by that of its step, a scalar; 1 where one of them is 0."""
    zero, one = x.number(0), x.number(1)
    length, moved = (b.ReduceL2(value, keepdims=0) for value in (x.value, step))
    known = b.And(b.Greater(length, zero), b.Greater(moved, zero))
    return b.Where(known, b.Div(length, b.Where(known, moved, one)), one)


@dataclass(frozen=True, slots=True)
class RAdam(_Moments):
    """RAdam as in PyTorch: Adam whose first steps are not divided by a variance of too few gradients.

    `weight_decay` is part of the gradient.

    >>> list(RAdam(1e-3).slots())
    ['mean', 'squares']
    """

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        b, gradient, (first, second) = moment.b, self.decayed(moment.b, x), self.betas
        mean, squares = self._moments(b, x, gradient)
        factor = moment.scalar(x.element, lambda: _rectified(moment, second), "rectified", second)
        root = b.Add(b.Sqrt(squares), x.number(self.eps))
        adapted = b.Where(b.Greater(factor, x.number(0)), b.Div(factor, root), x.number(1))
        step = b.Mul(mean, adapted)
        moved = b.Sub(x.value, b.Mul(step, moment.corrected_rate(x.scale, first, x.element)))
        return moved, {"mean": mean, "squares": squares}


@dataclass(frozen=True, slots=True)
class NAdam(_Moments):
    """NAdam as in PyTorch: Adam with the momentum of Nesterov; `weight_decay` is part of the gradient.

    The momentum of a step rises to the first of `betas`, the faster the greater `momentum_decay` is; the
    product of those so far is state, a scalar.

    >>> NAdam(2e-3).slots_of((4, 3))['momenta']
    Slot(shape=(), initial=1.0)
    """

    momentum_decay: float = 4e-3

    def __post_init__(self) -> None:
        Optimizer.__post_init__(self)
        check_number("momentum_decay", self.momentum_decay)

    def slots_of(self, shape: tuple[int, ...]) -> dict[str, Slot]:
        return {**_Moments.slots_of(self, shape), "momenta": Slot((), 1.0)}

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        b, gradient = moment.b, self.decayed(moment.b, x)
        mean, squares = self._moments(b, x, gradient)
        now, after = (self._momentum(moment, x, ahead) for ahead in (0, 1))
        momenta, one = b.Mul(x.slots["momenta"], now), x.number(1)
        share = b.Div(b.Sub(one, now), b.Sub(one, momenta))
        share_of_mean = b.Div(after, b.Sub(one, b.Mul(momenta, after)))
        direction = b.Add(b.Mul(gradient, share), b.Mul(mean, share_of_mean))
        root = b.Mul(b.Sqrt(squares), moment.inverse_root_of_bias(self.betas[1], x.element))
        step = b.Div(direction, b.Add(root, x.number(self.eps)))
        moved = b.Sub(x.value, b.Mul(step, moment.scaled_rate(x.scale, x.element)))
        return moved, {"mean": mean, "squares": squares, "momenta": momenta}

    def _momentum(self, moment: Moment, x: Parameter, ahead: int) -> Value:
        """Return the momentum of this step, or of one `ahead` of it, in the type of a parameter."""
        b = moment.b

        def compute() -> Value:
            count = b.Mul(b.Add(moment.count(), np.float64(ahead)), np.float64(self.momentum_decay))
            falling = b.Mul(b.Pow(np.float64(_BASE), count), np.float64(0.5))
            return b.Mul(b.Sub(np.float64(1), falling), np.float64(self.betas[0]))

        return moment.scalar(x.element, compute, "momentum", ahead)


_BASE = 0.96  # of the rise of the momentum of NAdam, from its paper
_FEW = 5.0  # the length of an average, in gradients, up to which its variance is not known


def _rectified(moment: Moment, beta: float) -> Value:
    """Return the factor of a step that is divided by the root of squares, in double; 0: do not divide."""
    b, bias, most = moment.b, moment.bias(beta), 2 / (1 - beta) - 1
    if most <= _FEW:
        return b.Mul(bias, np.float64(0))
    power = b.Sub(np.float64(1), bias)
    length = b.Sub(np.float64(most), b.Div(b.Mul(b.Mul(moment.count(), power), np.float64(2)), bias))
    known = b.Max(length, np.float64(_FEW))
    share = b.Div(b.Mul(b.Sub(known, np.float64(4)), b.Sub(known, np.float64(2))), known)
    square = b.Mul(b.Mul(share, np.float64(most / ((most - 4) * (most - 2)))), bias)
    return b.Where(b.Greater(length, np.float64(_FEW)), b.Sqrt(square), np.float64(0))


__all__ = ["LAMB", "AdaBelief", "Lion", "NAdam", "RAdam", "RMSprop"]
