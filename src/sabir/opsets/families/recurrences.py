"""Recurrent layers: directions, layouts, sequences of their own lengths, and the activation functions.

A room gives one direction's gates, computed for all time steps at once, and what one step makes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sabir.base import InferenceError, spend_work
from sabir.opsets.families.shapes import same_dim
from sabir.opsets.families.sizes import allotted
from sabir.opsets.typing import Array
from sabir.schema import one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import Dim, TensorType


States: TypeAlias = tuple[Array, ...]  # at one time, each of shape (batch, hidden); the first is the output
Step: TypeAlias = Callable[..., States]  # a step's gates and the states before it, to the states after it
Activation: TypeAlias = Callable[[Array], Array]

# by `direction`, for each way through time whether it goes backwards
_WAYS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
DIRECTIONS = one_of(*_WAYS)
ACTIVATIONS = one_of(
    "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
    "Softsign", "Softplus", any_case=True,
)  # fmt: skip
LAYOUTS = one_of(0, 1)
_RANK = 3  # of the input and of every state


@dataclass(frozen=True, slots=True)
class _Formula:
    """An activation function of x, alpha and beta; the defaults are None where it takes no such parameter."""

    function: Callable[[Array, Any, Any], Array]
    alpha: float | None = None
    beta: float | None = None


def sigmoid(x: Array) -> Array:
    """Return `1 / (1 + exp(-x))`."""
    y = np.exp(np.negative(x))
    y += 1
    return np.reciprocal(y, out=y)


_FORMULAS: dict[str, _Formula] = {
    "relu": _Formula(lambda x, _a, _b: np.maximum(x, 0)),
    "tanh": _Formula(lambda x, _a, _b: np.tanh(x)),
    "sigmoid": _Formula(lambda x, _a, _b: sigmoid(x)),
    "affine": _Formula(lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": _Formula(lambda x, a, _b: np.where(x >= 0, x, a * x), 0.01),
    "thresholdedrelu": _Formula(lambda x, a, _b: np.where(x >= a, x, x.dtype.type(0)), 1.0),
    "scaledtanh": _Formula(lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": _Formula(lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": _Formula(lambda x, a, _b: np.where(x >= 0, x, a * np.expm1(x)), 1.0),
    "softsign": _Formula(lambda x, _a, _b: x / (1 + np.abs(x))),
    "softplus": _Formula(lambda x, _a, _b: np.logaddexp(x, x.dtype.type(0))),
}


def activations(
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    *,
    default: Sequence[str],
    direction: str,
) -> list[list[Activation]]:
    """Return the activation functions of each direction.

    The parameters go in turn to the functions that take one; a function beyond the list has its default.
    """
    ways = len(_WAYS[direction])
    chosen = list(names or [*default] * ways)
    if len(chosen) != ways * len(default):
        raise ValueError(
            f"{direction!r} needs {ways * len(default)} activations, and {len(chosen)} are given"
        )
    alpha, beta = iter(alphas or ()), iter(betas or ())
    made = [_activation(name, alpha, beta) for name in chosen]
    return [made[i : i + len(default)] for i in range(0, len(made), len(default))]


def _activation(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
    formula = _FORMULAS[name.casefold()]
    alpha = None if formula.alpha is None else next(alphas, formula.alpha)
    beta = None if formula.beta is None else next(betas, formula.beta)
    return lambda x: formula.function(x, alpha, beta)


def limited(function: Activation, clip: float | None) -> Activation:
    """Return an activation function that sees its input limited to [-clip, clip]."""
    return function if clip is None else lambda x: function(np.clip(x, -clip, clip))


def infer(
    x: TensorType,
    recurrent: TensorType,
    states: Sequence[TensorType | None],
    *,
    direction: str,
    hidden_size: int | None,
    layout: int,
) -> tuple[TensorType, TensorType]:
    """Return the types of the output over time, and of each state after it."""
    ways = len(_WAYS[direction])
    for kind in (x, recurrent, *states):
        if kind is not None and kind.shape is not None and len(kind.shape) != _RANK:
            raise InferenceError(f"a recurrent layer takes tensors of rank {_RANK}, and gets {kind}")
    time, batch, _ = _in_order(x.shape, layout) if x.shape else (None, None, None)
    hidden: Dim = recurrent.shape[2] if recurrent.shape else None
    if hidden_size:
        hidden = same_dim([hidden, hidden_size], "hidden_size and the recurrence weights")
    for state in states:
        if state is not None and state.shape:
            way, rows, columns = _in_order(state.shape, layout)
            same_dim([ways, way], "the directions of an initial state")
            batch = same_dim([batch, rows], "the batch of an initial state")
            hidden = same_dim([hidden, columns], "the hidden size of an initial state")
    if layout:
        return x.with_shape(batch, time, ways, hidden), x.with_shape(batch, ways, hidden)
    return x.with_shape(time, ways, batch, hidden), x.with_shape(ways, batch, hidden)


def recur(
    x: Array,
    states: Sequence[Array | None],
    cell: Callable[[Array, int], tuple[Array, Step]],
    *,
    direction: str,
    hidden: int,
    lens: Array | None,
    layout: int,
) -> tuple[Array, ...]:
    """Return the output of every step, and the states after the last, in the type and layout of `x`.

    `cell(x, way)` gives the gates of direction number `way` for all steps of `x` (time, batch, input) at
    once, and its step.
    """
    kind, wide = x.dtype, np.promote_types(x.dtype, np.float32)
    x = _swapped(x.astype(wide, copy=False), layout)
    ways = _WAYS[direction]
    shape = (len(ways), x.shape[1], hidden)
    before = [
        np.zeros(shape, wide) if s is None else _swapped(s.astype(wide, copy=False), layout) for s in states
    ]
    if any(s.shape != shape for s in before):
        raise ValueError(f"an initial state must have the shape {list(shape)}, in layout 0")
    spend_work(0, 8 * len(ways) * len(x))  # operations of a step
    y = np.zeros(allotted((len(x), *shape), wide, x.size), wide)
    after = [np.empty(shape, wide) for _ in before]
    for way, backwards in enumerate(ways):
        gates, step = cell(x, way)
        final = _over_time(y[:, way], gates, step, tuple(s[way] for s in before), lens, backwards=backwards)
        for state, value in zip(after, final, strict=True):
            state[way] = value
    y = y.transpose(2, 0, 1, 3) if layout else y
    return (y.astype(kind, copy=False), *(_swapped(s, layout).astype(kind, copy=False) for s in after))


def _over_time(
    y: Array, gates: Array, step: Step, states: States, lens: Array | None, *, backwards: bool
) -> States:
    """Step through time, the outputs written to `y`; a sequence past its end keeps its states, and gives 0.

    Backwards, the steps past a sequence's end come first, so that it starts at its own last element.
    """
    shortest = len(gates) if lens is None or not lens.size else int(lens.min())
    for t in range(len(gates))[:: -1 if backwards else 1]:
        new = step(gates[t], *states)
        if t < shortest or lens is None:
            y[t] = new[0]
            states = new
            continue
        active = (lens > t)[:, None]
        y[t] = np.where(active, new[0], y.dtype.type(0))
        states = tuple(np.where(active, after, before) for after, before in zip(new, states, strict=True))
    return states


def _in_order(shape: Sequence[Dim], layout: int) -> tuple[Dim, Dim, Dim]:
    """Return the dimensions of layout 0, in which the batch comes second."""
    first, second, third = shape
    return (second, first, third) if layout else (first, second, third)


def _swapped(x: Array, layout: int) -> Array:
    return x.swapaxes(0, 1) if layout else x
