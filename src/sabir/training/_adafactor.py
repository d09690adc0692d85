"""Adafactor: second moments of a matrix as a row and a column, so that state takes little memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import UnsupportedError
from sabir.training._optimizers import Optimizer, Slot, check_number

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.training._optimizers import Moment, Parameter


@dataclass(frozen=True, slots=True)
class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern 2018) as in PyTorch, without momentum.

    A parameter of rank 2 or more has the means of its squared gradients along its last two axes, `rows` and
    `columns`; a vector has all `squares`. The rate is at most 1 by the root of the number of the step, and
    is multiplied by the root mean square of the parameter, which counts as `least_scale` or more. The root
    mean square of a step is at most `limit`. `eps` is by default that of the element type; `weight_decay` is
    no part of the gradient.

    >>> {name: slot.shape for name, slot in Adafactor(1e-2).slots_of((4, 3)).items()}
    {'rows': (4, 1), 'columns': (1, 3)}
    """

    beta_decay: float = -0.8
    eps: float | None = None
    least_scale: float = 1e-3
    limit: float = 1.0

    def __post_init__(self) -> None:
        check_number("weight_decay", self.weight_decay)
        check_number("eps", self.eps or 0.0)
        check_number("least_scale", self.least_scale)
        if not (math.isfinite(self.beta_decay) and self.beta_decay <= 0):
            raise UnsupportedError(f"beta_decay is a number, 0 or less; got {self.beta_decay}")
        if not self.limit > 0:
            raise UnsupportedError(f"limit is a number above 0; got {self.limit}")

    def slots_of(self, shape: tuple[int, ...]) -> dict[str, Slot]:
        if len(shape) < 2:  # ruff: ignore[magic-value-comparison]  a matrix has 2 axes
            return {"squares": Slot(shape, 0.0)}
        return {"rows": Slot((*shape[:-1], 1), 0.0), "columns": Slot((*shape[:-2], 1, shape[-1]), 0.0)}

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        b, squared = moment.b, moment.b.Mul(x.gradient, x.gradient)
        eps = float(np.finfo(x.element.dtype).eps) if self.eps is None else self.eps
        axes = {"rows": [-1], "columns": [-2]}
        slots: dict[str, Value] = {}
        taken = moment.scalar(x.element, lambda: self._taken(moment), "taken", self.beta_decay)
        for name, slot in x.slots.items():
            new = b.ReduceMean(squared, axes[name]) if name in axes else squared
            slots[name] = b.Add(slot, b.Mul(b.Sub(new, slot), taken))
        if "rows" in slots:
            whole = b.Max(b.ReduceMean(slots["rows"], [-2]), x.number(eps))
            variance = b.Div(b.Mul(slots["rows"], slots["columns"]), whole)
        else:
            variance = slots["squares"]
        step = b.Div(x.gradient, b.Sqrt(b.Max(variance, x.number(eps * eps))))
        scale = b.Max(_root_mean_square(b, x.value), x.number(self.least_scale))
        rate = b.Mul(scale, self._rate(moment, x))
        over = b.Max(b.Div(_root_mean_square(b, step), x.number(self.limit)), x.number(1))
        return b.Sub(x.decayed(moment), b.Mul(step, b.Div(rate, over))), slots

    def _taken(self, moment: Moment) -> Value:
        """Return how much of the squares of a step the averages take, in double."""
        return moment.b.Pow(moment.count(), np.float64(self.beta_decay))

    def _rate(self, moment: Moment, x: Parameter) -> Value:
        """Return the rate of the step, at most 1 by the root of its number, in the type of a parameter."""
        b = moment.b

        def compute() -> Value:
            rate = moment.rate if x.scale == 1 else b.Mul(moment.rate, np.float64(x.scale))
            return b.Min(rate, b.Div(np.float64(1), b.Sqrt(moment.count())))

        return moment.scalar(x.element, compute, "least rate", x.scale)


def _root_mean_square(b: Builder, value: Value) -> Value:
    return b.Sqrt(b.ReduceMean(b.Mul(value, value), keepdims=0))


__all__ = ["Adafactor"]
