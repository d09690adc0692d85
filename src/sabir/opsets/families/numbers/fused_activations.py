"""Activations that onnxruntime's fused operators apply to their result, by name: on numpy and as graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from sabir.base import InferenceError
from sabir.opsets.families.numbers.pointwise import exponential_unit, sigmoid
from sabir.opsets.families.numbers.scalars import Numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array

    Parameters: TypeAlias = Sequence[float]
    Compute: TypeAlias = Callable[[Array, Parameters], Array]
    Emit: TypeAlias = Callable[[Builder, Value, Parameters], Value]


@dataclass(frozen=True, slots=True)
class _Formula:
    """An activation as a function of an array, and of a builder and a value; both take the parameters."""

    parameters: tuple[str, ...]
    compute: Compute
    emit: Emit


def _hard_sigmoid(x: Array, p: Parameters) -> Array:
    return np.clip(p[0] * x + p[1], 0, 1)


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, x.dtype.type(0))


def _scaled(name: str, b: Builder, x: Value, p: Parameters) -> Value:
    numbers = Numbers.like(b, x)
    return numbers.op("Mul", b.op(name, numbers.op("Mul", x, p[1])), p[0])


def _celu(b: Builder, x: Value, p: Parameters) -> Value:
    numbers = Numbers.like(b, x)
    return numbers.op("Mul", b.Elu(numbers.op("Mul", x, 1 / p[0]), alpha=1.0), p[0])


_FORMULAS: dict[str, _Formula] = {
    "Relu": _Formula((), lambda x, _: np.maximum(x, 0), lambda b, x, _: b.Relu(x)),
    "Tanh": _Formula((), lambda x, _: np.tanh(x), lambda b, x, _: b.Tanh(x)),
    "Sigmoid": _Formula((), lambda x, _: sigmoid(x), lambda b, x, _: b.Sigmoid(x)),
    "HardSwish": _Formula(
        (), lambda x, _: x * _hard_sigmoid(x, (1 / 6, 0.5)), lambda b, x, _: b.HardSwish(x)
    ),
    "Softplus": _Formula((), lambda x, _: _softplus(x), lambda b, x, _: b.Softplus(x)),
    "Softsign": _Formula((), lambda x, _: x / (1 + np.abs(x)), lambda b, x, _: b.Softsign(x)),
    "LeakyRelu": _Formula(
        ("alpha",), lambda x, p: np.where(x < 0, p[0] * x, x), lambda b, x, p: b.LeakyRelu(x, alpha=p[0])
    ),
    "Elu": _Formula(("alpha",), lambda x, p: exponential_unit(x, p[0]), lambda b, x, p: b.Elu(x, alpha=p[0])),
    "Celu": _Formula(("alpha",), lambda x, p: p[0] * exponential_unit(x / p[0], 1.0), _celu),
    "ThresholdedRelu": _Formula(
        ("alpha",),
        lambda x, p: np.where(x <= p[0], x.dtype.type(0), x),
        lambda b, x, p: b.ThresholdedRelu(x, alpha=p[0]),
    ),
    "Selu": _Formula(
        ("alpha", "gamma"),
        lambda x, p: p[1] * exponential_unit(x, p[0]),
        lambda b, x, p: b.Selu(x, alpha=p[0], gamma=p[1]),
    ),
    "HardSigmoid": _Formula(
        ("alpha", "beta"), _hard_sigmoid, lambda b, x, p: b.HardSigmoid(x, alpha=p[0], beta=p[1])
    ),
    "ParametricSoftplus": _Formula(
        ("alpha", "beta"),
        lambda x, p: p[0] * _softplus(p[1] * x),
        lambda b, x, p: _scaled("Softplus", b, x, p),
    ),
    "ScaledTanh": _Formula(
        ("alpha", "beta"), lambda x, p: p[0] * np.tanh(p[1] * x), lambda b, x, p: _scaled("Tanh", b, x, p)
    ),
    "Clip": _Formula(
        ("min", "max"),
        lambda x, p: np.clip(x, p[0], p[1]),
        lambda b, x, p: Numbers.like(b, x).clipped(x, p[0], p[1]),
    ),
}
OF_CONVOLUTIONS = ("Relu", "Tanh", "Sigmoid", "HardSwish", "LeakyRelu", "Clip", "HardSigmoid")
OF_PRODUCTS = (
    "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "HardSigmoid", "Softplus", "Softsign",
    "ParametricSoftplus", "ScaledTanh", "ThresholdedRelu", "Selu", "Celu",
)  # fmt: skip


class Activation(NamedTuple):
    """An activation with its parameters; without a name it changes nothing."""

    name: str | None
    parameters: Parameters = ()

    @classmethod
    def of_list(cls, name: str | None, parameters: Sequence[float] | None) -> Activation:
        """Return an activation whose parameters are a list; raises InferenceError for a wrong number."""
        needed = _FORMULAS[name].parameters if name else ()
        found = tuple(parameters or ())
        if needed and len(found) != len(needed):
            raise InferenceError(
                f"activation_params {list(found)} of {name} must have {len(needed)} values: "
                f"{', '.join(needed)}"
            )
        return cls(name, found)

    @classmethod
    def of_attributes(cls, name: str | None, **parameters: float | None) -> Activation:
        """Return an activation whose parameters are attributes; raises InferenceError for a missing one."""
        found: list[float] = []
        for parameter in _FORMULAS[name].parameters if name else ():
            value = parameters.get(parameter)
            if value is None:
                raise InferenceError(f"activation_{parameter} is missing, which {name} needs")
            found.append(value)
        return cls(name, tuple(found))

    def compute(self, x: Array) -> Array:
        """Return the activation of an array, in its element type."""
        if self.name is None:
            return x
        with np.errstate(over="ignore", under="ignore"):
            return _FORMULAS[self.name].compute(x, self.parameters).astype(x.dtype, copy=False)

    def emit(self, b: Builder, x: Value) -> Value:
        """Return the activation of a value; raises Unconvertible where a constant's type is unknown."""
        return x if self.name is None else _FORMULAS[self.name].emit(b, x, self.parameters)
