"""Recurrent layers: directions, layouts, sequences of their own lengths, and the activation functions.

A room gives one direction's gates, computed for all time steps at once, and what one step makes of them.

`clip` bounds the input of the activation functions to [-clip, clip]; "no clip if not specified", the standard
says. Taken literally, a clip of 0 makes every activation see 0, whatever the layer is fed; whoever writes it
means a framework's "0: do not clip". So 0 does not clip, and the checker warns. onnxruntime's LSTM and GRU
refuse 0, its RNN takes it literally. A clip below 0, or NaN, bounds nothing and is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from sabir.base import InferenceError, spend_work
from sabir.opsets.families.recurrence_shapes import Inputs, sizes, ways_of
from sabir.opsets.families.sizes import allotted
from sabir.opsets.typing import Array
from sabir.schema import one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import TensorType


States: TypeAlias = tuple[Array, ...]  # at one time, each of shape (batch, hidden); the first is the output
Step: TypeAlias = Callable[..., States]  # a step's gates and the states before it, to the states after it
Activation: TypeAlias = Callable[[Array], Array]

ACTIVATIONS = one_of(
    "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
    "Softsign", "Softplus", any_case=True,
)  # fmt: skip


class Layer(NamedTuple):
    """A kind of layer: how many gates and states it has, and its activation functions by default."""

    gates: int
    states: int
    default: tuple[str, ...]


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


def chosen(
    layer: Layer,
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    *,
    direction: str,
) -> list[list[Activation]]:
    """Return the activation functions of each direction.

    The parameters go in turn to the functions that take one; a function beyond the list has its default.
    """
    ways, default = len(ways_of(direction)), layer.default
    wanted = list(names or [*default] * ways)
    if len(wanted) != ways * len(default):
        raise InferenceError(
            f"`activations` of a {direction} layer must be {ways * len(default)}, not {len(wanted)}"
        )
    alpha, beta = iter(alphas or ()), iter(betas or ())
    made = [_activation(name, alpha, beta) for name in wanted]
    return [made[i : i + len(default)] for i in range(0, len(made), len(default))]


def _activation(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
    formula = _FORMULAS[name.casefold()]
    alpha = None if formula.alpha is None else next(alphas, formula.alpha)
    beta = None if formula.beta is None else next(betas, formula.beta)
    return lambda x: formula.function(x, alpha, beta)


def limited(function: Activation, clip: float | None) -> Activation:
    """Return an activation function that sees its input limited to [-clip, clip]."""
    bound = _bound(clip)
    return function if bound is None else lambda x: function(np.clip(x, -bound, bound))


def _bound(clip: float | None) -> float | None:
    if clip is not None and not clip >= 0:
        raise InferenceError(f"`clip` is {clip}, and must be above 0, or 0 for no clip")
    return clip or None


def doubts(clip: float | None) -> Iterator[str]:
    """Yield what the checker warns about."""
    if clip == 0:
        yield "`clip` is 0 and is taken as no clip; runtimes differ: leave it out"


def infer(
    layer: Layer,
    inputs: Inputs[TensorType],
    *,
    activations: Sequence[str] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int,
) -> tuple[TensorType, ...]:
    """Return the types of the output over time, and of each state after it."""
    _bound(clip)
    chosen(layer, activations, None, None, direction=direction)
    found = sizes(inputs, layer.gates, direction=direction, hidden_size=hidden_size, layout=layout)
    output, state = found.of_outputs(layout)
    return (inputs.x.with_shape(*output), *[inputs.x.with_shape(*state)] * layer.states)


def recur(
    layer: Layer,
    inputs: Inputs[Array],
    cell: Callable[[Array, int], tuple[Array, Step]],
    *,
    direction: str,
    hidden_size: int | None,
    layout: int,
) -> tuple[Array, ...]:
    """Return the output of every step, and the states after the last, in the type and layout of X.

    `cell(x, way)` gives the gates of direction number `way` for all steps of `x` (time, batch, input) at
    once, and its step. Raises InferenceError for inputs that do not agree.
    """
    sizes(inputs, layer.gates, direction=direction, hidden_size=hidden_size, layout=layout)
    kind, wide = inputs.x.dtype, np.promote_types(inputs.x.dtype, np.float32)
    x = _swapped(inputs.x.astype(wide, copy=False), layout)
    ways = ways_of(direction)
    shape = (len(ways), x.shape[1], inputs.r.shape[-1])
    before = [
        np.zeros(shape, wide) if s is None else _swapped(s.astype(wide, copy=False), layout)
        for s in (inputs.h, inputs.c)[: layer.states]
    ]
    spend_work(0, 8 * len(ways) * len(x))  # operations of a step
    y = np.zeros(allotted((len(x), *shape), wide, x.size), wide)
    after = [np.empty(shape, wide) for _ in before]
    for way, backwards in enumerate(ways):
        gates, step = cell(x, way)
        initial = tuple(s[way] for s in before)
        final = _over_time(y[:, way], gates, step, initial, inputs.lens, backwards=backwards)
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


def _swapped(x: Array, layout: int) -> Array:
    return x.swapaxes(0, 1) if layout else x
