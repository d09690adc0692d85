"""Recurrent layers: directions, layouts, sequences of different lengths, and the activation functions.

A room provides the gates of one direction, computed for all time steps at once, and the function of one step.

`clip` limits the input of the activation functions to [-clip, clip]; "no clip if not specified", the
standard says. Taken literally, a clip of 0 makes the input of every activation 0, whatever the input of the
layer; but whoever writes it means a framework's "0: do not clip". So 0 does not clip, and the checker warns.
onnxruntime's LSTM and GRU refuse 0, its RNN takes it literally. A clip below 0, or NaN, is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from sabir.base import InferenceError
from sabir.opsets.families.recurrence.recurrence_shapes import RecurrentInputs, directions_of, sizes
from sabir.opsets.families.shapes.sizes import allotted, spend_operations
from sabir.opsets.typing import Array
from sabir.schema import one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import TensorType


States: TypeAlias = tuple[Array, ...]  # at one time, each (batch, hidden); the first is the output
RecurrentStep: TypeAlias = Callable[..., States]  # (gates, *states before the step) -> states after it
Activation: TypeAlias = Callable[[Array], Array]

_MANY_STEPS = 16  # fewer products cost less than a copy of the weights


class Layer(NamedTuple):
    """A type of layer: its numbers of gates and of states, and its default activation functions."""

    gates: int
    states: int
    default: tuple[str, ...]


class Named(NamedTuple):
    """An activation function by its name, and the parameters that it has."""

    name: str
    alpha: float | None
    beta: float | None


@dataclass(frozen=True, slots=True)
class _Formula:
    """An activation function of x, alpha and beta; the default of a parameter that it lacks is None."""

    function: Callable[[Array, Any, Any], Array]
    alpha: float | None = None
    beta: float | None = None


def sigmoid(x: Array) -> Array:
    """Return `1 / (1 + exp(-x))`."""
    y = np.negative(x)
    np.exp(y, out=y)
    y += 1
    return np.reciprocal(y, out=y)


_FORMULAS: dict[str, _Formula] = {
    "Relu": _Formula(lambda x, _a, _b: np.maximum(x, 0)),
    "Tanh": _Formula(lambda x, _a, _b: np.tanh(x)),
    "Sigmoid": _Formula(lambda x, _a, _b: sigmoid(x)),
    "Affine": _Formula(lambda x, a, b: a * x + b, 1.0, 0.0),
    "LeakyRelu": _Formula(lambda x, a, _b: np.where(x >= 0, x, a * x), 0.01),
    "ThresholdedRelu": _Formula(lambda x, a, _b: np.where(x >= a, x, x.dtype.type(0)), 1.0),
    "ScaledTanh": _Formula(lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "HardSigmoid": _Formula(lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "Elu": _Formula(lambda x, a, _b: np.where(x >= 0, x, a * np.expm1(x)), 1.0),
    "Softsign": _Formula(lambda x, _a, _b: x / (1 + np.abs(x))),
    "Softplus": _Formula(lambda x, _a, _b: np.logaddexp(x, x.dtype.type(0))),
}
_ANY_CASE = {name.casefold(): name for name in _FORMULAS}
ACTIVATIONS = one_of(*_FORMULAS, any_case=True)


def activations_of(
    layer: Layer,
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    *,
    direction: str,
) -> list[list[Activation]]:
    """Return the activation functions of each direction; raises InferenceError as `named_of` does."""
    named = named_of(layer, names, alphas, betas, direction=direction)
    return [[*starmap(_activation, functions)] for functions in named]


def named_of(
    layer: Layer,
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    *,
    direction: str,
) -> list[list[Named]]:
    """Return the names and parameters of the activation functions of each direction.

    The functions that have a parameter take the values in order; those after the last value have a default.
    Raises InferenceError for a wrong number of names.
    """
    directions, default = len(directions_of(direction)), layer.default
    wanted = list(names or [*default] * directions)
    if len(wanted) != directions * len(default):
        raise InferenceError(
            f"`activations` of a {direction} layer must be {directions * len(default)}, not {len(wanted)}"
        )
    alpha, beta = iter(alphas or ()), iter(betas or ())
    functions = [_named(name, alpha, beta) for name in wanted]
    return [functions[i : i + len(default)] for i in range(0, len(functions), len(default))]


def _named(spelt: str, alphas: Iterator[float], betas: Iterator[float]) -> Named:
    name = _ANY_CASE[spelt.casefold()]
    formula = _FORMULAS[name]
    alpha = None if formula.alpha is None else next(alphas, formula.alpha)
    beta = None if formula.beta is None else next(betas, formula.beta)
    return Named(name, alpha, beta)


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    function = _FORMULAS[name].function
    return lambda x: function(x, alpha, beta)


def limited(function: Activation, clip: float | None) -> Activation:
    """Return an activation function whose input is limited to [-clip, clip]."""
    bound = bound_of(clip)
    return function if bound is None else lambda x: function(np.clip(x, -bound, bound))


def bound_of(clip: float | None) -> float | None:
    """Return the limit of the activation functions' inputs; raises InferenceError for one below 0."""
    if clip is not None and not clip >= 0:
        raise InferenceError(f"`clip` is {clip}, and must be above 0, or 0 for no clip")
    return clip or None


def warn_of_clip(*_: TensorType | None, clip: float | None) -> Iterator[str]:
    """Yield the checker's warnings about the attribute `clip` of a recurrent layer."""
    if clip == 0:
        yield "`clip` is 0 and is taken as no clip; runtimes differ: leave it out"


def infer(
    layer: Layer,
    inputs: RecurrentInputs[TensorType],
    *,
    activations: Sequence[str] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int = 0,
    **_: Any,
) -> tuple[TensorType, ...]:
    """Return the type of Y, and that of each final state; other attributes do not affect them."""
    bound_of(clip)
    activations_of(layer, activations, None, None, direction=direction)
    found = sizes(inputs, layer.gates, direction=direction, hidden_size=hidden_size, layout=layout)
    output, state = found.of_outputs(layout)
    return (inputs.x.with_shape(*output), *[inputs.x.with_shape(*state)] * layer.states)


def recur(
    layer: Layer,
    inputs: RecurrentInputs[Array],
    cell: Callable[[Array, int], tuple[Array, RecurrentStep]],
    *,
    direction: str,
    hidden_size: int | None,
    layout: int = 0,
    **_: Any,
) -> tuple[Array, ...]:
    """Return Y and the final states, in the element type and layout of X.

    `cell(x, number)` returns the gates of one direction for all steps of `x` (time, batch, input), and the
    function of one step. Raises InferenceError for inputs that do not match.
    """
    sizes(inputs, layer.gates, direction=direction, hidden_size=hidden_size, layout=layout)
    dtype, wide = inputs.x.dtype, np.promote_types(inputs.x.dtype, np.float32)
    x = _swapped(inputs.x.astype(wide, copy=False), layout)
    directions = directions_of(direction)
    shape = (len(directions), x.shape[1], inputs.r.shape[-1])
    before = [
        np.zeros(shape, wide) if s is None else _swapped(s.astype(wide, copy=False), layout)
        for s in (inputs.h, inputs.c)[: layer.states]
    ]
    spend_operations(8 * len(directions) * len(x))  # 8 operations for each step
    y = np.zeros(allotted((len(x), *shape), wide, x.size), wide)
    after = [np.empty(shape, wide) for _ in before]
    for number, backwards in enumerate(directions):
        gates, step = cell(x, number)
        initial = tuple(s[number] for s in before)
        final = _over_time(y[:, number], gates, step, initial, inputs.lens, backwards=backwards)
        for state, value in zip(after, final, strict=True):
            state[number] = value
    y = y.transpose(2, 0, 1, 3) if layout else y
    return (y.astype(dtype, copy=False), *(_swapped(s, layout).astype(dtype, copy=False) for s in after))


def for_steps(r: Array, steps: int) -> Array:
    """Return the weights R, of which each step multiplies a state by the transposed matrix.

    Where there are many steps that matrix lies row by row: BLAS need not transpose it in each of them.
    """
    return np.asfortranarray(r) if steps >= _MANY_STEPS else r


def _over_time(
    y: Array, gates: Array, step: RecurrentStep, states: States, lens: Array | None, *, backwards: bool
) -> States:
    """Run all steps and write their outputs to `y`; after its end a sequence keeps its states, and outputs 0.

    Backwards, the steps after the end of a sequence come first, so that it starts at its own last element.
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
