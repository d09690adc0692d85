"""Optimizers: what a step does to a parameter, as plain operators or as an operator of the standard."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import FLOAT, element
from sabir.ir import TensorType
from sabir.training._schedules import Constant, Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.elements import ElementType
    from sabir.ir import Array, Builder, Value

PREVIEW = "ai.onnx.preview.training"


def check_number(name: str, value: float, below: float = math.inf) -> None:
    """Raise UnsupportedError for a number below 0, or not below a limit."""
    if not 0 <= value < below:
        limit = "" if below == math.inf else f" and below {below:g}"
        raise UnsupportedError(f"{name} is a number, 0 or more{limit}; got {value}")


class Moment:
    """The scalars that all parameters of one step share: the rate, the number of the step, and what follows.

    `step` counts from 1, int64; `rate` is a scalar of double. Scalars are computed in double, and cast.
    """

    def __init__(self, b: Builder, step: Value, rate: Value) -> None:
        self.b, self.step, self.rate = b, step, rate
        self._found: dict[tuple[Any, ...], Value] = {}

    def scaled_rate(self, factor: float, to: ElementType) -> Value:
        """Return the learning rate times a factor, as an element type."""
        rate = self._once("rate", factor, lambda: self._times(factor))
        return self._cast(rate, to, "rate", factor)

    def bias(self, beta: float) -> Value:
        """Return `1 - beta ** step`, in double."""

        def compute() -> Value:
            return self.b.Sub(np.float64(1), self.b.Pow(np.float64(beta), self.count()))

        return self._once("bias", beta, compute)

    def corrected_rate(self, factor: float, beta: float, to: ElementType) -> Value:
        """Return the learning rate times a factor, divided by `bias(beta)`, as an element type."""

        def compute() -> Value:
            rate = self._once("rate", factor, lambda: self._times(factor))
            return self.b.Div(rate, self.bias(beta))

        return self._cast(self._once("corrected", factor, beta, compute), to, "corrected", factor, beta)

    def inverse_root_of_bias(self, beta: float, to: ElementType) -> Value:
        """Return 1 by the square root of `bias(beta)`, as an element type."""
        root = self._once("root", beta, lambda: self.b.Div(np.float64(1), self.b.Sqrt(self.bias(beta))))
        return self._cast(root, to, "root", beta)

    def scalar(self, to: ElementType, compute: Callable[[], Value], *key: Any) -> Value:
        """Return a scalar as an element type; `compute` builds it in double, once for a key."""
        return self._cast(self._once(*key, compute), to, *key)

    def count(self) -> Value:
        """Return the number of the step, from 1, in double."""
        return self._once("count", lambda: self.b.Cast(self.step, to=element("double").number))

    def is_first(self) -> Value:
        """Return whether the step is the first one, a scalar of bool."""
        return self._once("first", lambda: self.b.Equal(self.step, np.int64(1)))

    def _times(self, factor: float) -> Value:
        return self.rate if factor == 1 else self.b.Mul(self.rate, np.float64(factor))

    def _cast(self, value: Value, to: ElementType, *key: Any) -> Value:
        return self._once("cast", to.number, *key, lambda: self.b.Cast(value, to=to.number))

    def _once(self, *key: Any) -> Value:
        """Return the value of a key; the last argument computes it."""
        found = self._found.get(key[:-1])
        if found is None:
            found = self._found[key[:-1]] = key[-1]()
        return found


class Slot(NamedTuple):
    """A state variable of one parameter: its shape, and the number that fills it at first."""

    shape: tuple[int, ...]
    initial: float


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a step: its value, its gradient, what its group says, and its slots of state."""

    value: Value
    gradient: Value
    scale: float
    weight_decay: float
    slots: Mapping[str, Value]

    @property
    def element(self) -> ElementType:
        """The element type."""
        return self.value.type.element if isinstance(self.value.type, TensorType) else FLOAT

    def number(self, value: float) -> Array:
        """Return a number in the element type of the parameter."""
        return np.asarray(value, self.element.dtype)

    def mixed(self, b: Builder, average: Value, value: Value, beta: float) -> Value:
        """Build `beta * average + (1 - beta) * value`, a moving average."""
        return b.Add(b.Mul(average, self.number(beta)), b.Mul(value, self.number(1 - beta)))

    def decayed(self, moment: Moment) -> Value:
        """Build the value, less its decay times the rate: a decay that is no part of the gradient."""
        if not self.weight_decay:
            return self.value
        b, rate = moment.b, moment.scaled_rate(self.scale, self.element)
        return b.Mul(self.value, b.Sub(self.number(1), b.Mul(rate, self.number(self.weight_decay))))


@dataclass(frozen=True, slots=True)
class Optimizer(ABC):
    """How a step changes the parameters. `rate` is a learning rate or a schedule of them.

    >>> SGD(0.1).schedule.rate
    0.1
    """

    rate: float | Schedule
    weight_decay: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        """Raise UnsupportedError for numbers that no step can have."""
        check_number("weight_decay", self.weight_decay)
        check_number("momentum", getattr(self, "momentum", 0.0))
        check_number("eps", getattr(self, "eps", 0.0))
        check_number("initial", getattr(self, "initial", 0.0))
        check_number("dampening", getattr(self, "dampening", 0.0), below=1)
        for beta in getattr(self, "betas", ()):
            check_number("a beta", beta, below=1)

    @property
    def schedule(self) -> Schedule:
        """The schedule of the learning rate."""
        return self.rate if isinstance(self.rate, Schedule) else Constant(float(self.rate))

    def slots(self) -> dict[str, float]:
        """Return the state that each parameter has in its own shape, by name, with its first value."""
        return {}

    def slots_of(self, shape: tuple[int, ...]) -> dict[str, Slot]:
        """Return the state that a parameter of a shape has, by name."""
        return {name: Slot(shape, initial) for name, initial in self.slots().items()}

    @abstractmethod
    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        """Build the new value of a parameter and of its slots."""

    def decayed(self, b: Builder, x: Parameter) -> Value:
        """Return the gradient with the decay of the weights in it."""
        if not x.weight_decay:
            return x.gradient
        return b.Add(x.gradient, b.Mul(x.value, x.number(x.weight_decay)))


@dataclass(frozen=True, slots=True)
class SGD(Optimizer):
    """Gradient descent, with momentum, plain or of Nesterov, as in PyTorch.

    From the second step on the momentum takes `1 - dampening` of the gradient.

    >>> list(SGD(0.1, momentum=0.9).slots())
    ['momentum']
    """

    momentum: float = 0.0
    nesterov: bool = False
    dampening: float = 0.0

    def slots(self) -> dict[str, float]:
        return {"momentum": 0.0} if self.momentum else {}

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        b, direction = moment.b, self.decayed(moment.b, x)
        slots: dict[str, Value] = {}
        if self.momentum:
            share = x.number(self.momentum)
            slots["momentum"] = b.Add(b.Mul(x.slots["momentum"], share), self._damped(moment, x, direction))
            direction = (
                b.Add(direction, b.Mul(slots["momentum"], share)) if self.nesterov else slots["momentum"]
            )
        return b.Sub(x.value, b.Mul(direction, moment.scaled_rate(x.scale, x.element))), slots

    def _damped(self, moment: Moment, x: Parameter, direction: Value) -> Value:
        """Return what the momentum takes of the gradient: all of it in the first step."""
        if not self.dampening:
            return direction
        b = moment.b
        one, rest = np.float64(1), np.float64(1 - self.dampening)
        taken = moment.scalar(x.element, lambda: b.Where(moment.is_first(), one, rest), "dampening")
        return b.Mul(direction, taken)


@dataclass(frozen=True, slots=True)
class Adagrad(Optimizer):
    """Adagrad: the rate of each element falls with the sum of its squared gradients, as in PyTorch.

    >>> Adagrad(0.01).eps
    1e-10
    """

    eps: float = 1e-10
    initial: float = 0.0

    def slots(self) -> dict[str, float]:
        return {"squares": self.initial}

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        b, gradient = moment.b, self.decayed(moment.b, x)
        squares = b.Add(x.slots["squares"], b.Mul(gradient, gradient))
        step = b.Div(gradient, b.Add(b.Sqrt(squares), x.number(self.eps)))
        return b.Sub(x.value, b.Mul(step, moment.scaled_rate(x.scale, x.element))), {"squares": squares}


@dataclass(frozen=True, slots=True)
class Adam(Optimizer):
    """Adam as in PyTorch; `weight_decay` is part of the gradient.

    >>> list(Adam(1e-3).slots())
    ['mean', 'squares']
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def slots(self) -> dict[str, float]:
        return {"mean": 0.0, "squares": 0.0}

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        return self._moved(moment, x, x.value, self.decayed(moment.b, x))

    def _moved(
        self, moment: Moment, x: Parameter, start: Value, gradient: Value
    ) -> tuple[Value, dict[str, Value]]:
        b, (first, second) = moment.b, self.betas
        mean, squares = x.slots["mean"], x.slots["squares"]
        mean = b.Add(mean, b.Mul(b.Sub(gradient, mean), x.number(1 - first)))
        squares = b.Add(
            b.Mul(squares, x.number(second)), b.Mul(b.Mul(gradient, gradient), x.number(1 - second))
        )
        root = b.Mul(b.Sqrt(squares), moment.inverse_root_of_bias(second, x.element))
        step = b.Div(mean, b.Add(root, x.number(self.eps)))
        moved = b.Sub(start, b.Mul(step, moment.corrected_rate(x.scale, first, x.element)))
        return moved, {"mean": mean, "squares": squares}


@dataclass(frozen=True, slots=True)
class AdamW(Adam):
    """Adam with a decay of the weights that is no part of the gradient, as in PyTorch.

    >>> AdamW(1e-3).weight_decay
    0.01
    """

    weight_decay: float = field(default=0.01, kw_only=True)

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        return self._moved(moment, x, x.decayed(moment), x.gradient)


@dataclass(frozen=True, slots=True)
class StandardOptimizer(Optimizer):
    """An optimizer of the standard: one node of `ai.onnx.preview.training` for each parameter.

    Its attributes are of single precision, and few runtimes have the operators. `operator` is Momentum,
    Adagrad or Adam, and `attributes` are those of the operator. `weight_decay` is its `norm_coefficient`.

    >>> StandardOptimizer(0.1, 'Adam', {'alpha': 0.9}).slots()
    {'mean': 0.0, 'squares': 0.0}
    """

    operator: str = "Adam"
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def slots(self) -> dict[str, float]:
        found = _STANDARD.get(self.operator)
        if found is None:
            raise UnsupportedError(
                f"the standard has no optimizer {self.operator!r}; it has {', '.join(_STANDARD)}"
            )
        return dict.fromkeys(found, 0.0)

    def update(self, moment: Moment, x: Parameter) -> tuple[Value, dict[str, Value]]:
        names = list(self.slots())
        given: dict[str, Any] = {"norm_coefficient": x.weight_decay, **self.attributes}
        if self.operator == "Momentum":
            given = {"alpha": 0.9, "beta": 1.0, "mode": "standard", **given}
        found = moment.b.op(
            self.operator, moment.scaled_rate(x.scale, FLOAT), moment.step, x.value, x.gradient,
            *(x.slots[name] for name in names), outputs=1 + len(names), domain=PREVIEW, **given,
        )  # fmt: skip
        return found[0], dict(zip(names, found[1:], strict=True))


_STANDARD = {"Momentum": ("momentum",), "Adagrad": ("squares",), "Adam": ("mean", "squares")}

__all__ = [
    "PREVIEW", "SGD", "Adagrad", "Adam", "AdamW", "Moment", "Optimizer", "Parameter", "Slot",
    "StandardOptimizer", "check_number",
]  # fmt: skip
