"""RNN: the simple recurrent layer."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.products import products
from sabir.opsets.families.recurrence import (
    recurrence_adapters,
    recurrence_examples,
    recurrence_gradients,
    recurrence_kernels,
    recurrences,
)
from sabir.opsets.families.recurrence import recurrence_ports as ports
from sabir.opsets.families.recurrence.recurrence_gradients import Carried, Direction, Gradients
from sabir.opsets.families.recurrence.recurrence_kernels import Gates
from sabir.opsets.families.recurrence.recurrence_shapes import RecurrentInputs
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Attribute, Example, Input, Operator

rnn = Operator("RNN", summary="A recurrent layer, step by step: `h = tanh(W x + R h + b)`.")

T = ports.T

v1 = rnn.first(
    1,
    inputs=[
        ports.X,
        Input("W", T, "Shape (directions, hidden, input).", differentiable=True),
        Input("R", T, "Shape (directions, hidden, hidden).", differentiable=True),
        Input("B", T, "(directions, 2 hidden): biases of W, then of R.", optional=True, differentiable=True),
        ports.SEQUENCE_LENS,
        ports.INITIAL_H,
    ],
    outputs=[ports.Y, ports.Y_H],
    attributes=[
        *ports.FIRST_ATTRIBUTES,
        ports.DIRECTION,
        Attribute(
            "activations",
            "strings",
            "The function of each direction.",
            default=("Tanh", "Tanh"),
            values=recurrences.ACTIVATIONS,
        ),
    ],
)
v7 = v1.evolve(7, "Drops `output_sequence`: Y is computed where the node names it.", drop=["output_sequence"])
v14 = v7.extend(14, "`layout` lets the batch come first.", attributes=[ports.LAYOUT])
v22 = v14.widen(22, T=BFLOAT16)

STATES = slice(4, 5)  # the initial state, counted after X
LAYER = recurrences.Layer(1, 1, ("Tanh",))


@v1.infer
def infer(
    x: TensorType, w: TensorType, r: TensorType, /, *optional: TensorType | None, activations: Sequence[str],
    direction: str, **attributes: Any,
) -> tuple[TensorType, ...]:  # fmt: skip
    inputs, functions = RecurrentInputs(x, w, r, *optional), _of_directions(activations, direction)
    return recurrences.infer(LAYER, inputs, activations=functions, direction=direction, **attributes)


rnn.check(recurrences.warn_of_clip)


@v1.evaluate
def evaluate(
    x: Array, w: Array, r: Array, /, *optional: Array | None, activations: Sequence[str],
    activation_alpha: Sequence[float] | None, activation_beta: Sequence[float] | None, clip: float | None,
    direction: str, **attributes: Any,
) -> tuple[Array, ...]:  # fmt: skip
    inputs, names = RecurrentInputs(x, w, r, *optional), _of_directions(activations, direction)
    functions = recurrences.activations_of(
        LAYER, names, activation_alpha, activation_beta, direction=direction
    )

    def cell(x: Array, number: int) -> tuple[Array, recurrences.RecurrentStep]:
        gates = products.matmul(x, w[number].T.astype(x.dtype, copy=False))
        if inputs.b is not None:
            gates += inputs.b[number].astype(x.dtype, copy=False).reshape(2, -1).sum(axis=0)
        transposed = recurrences.for_steps(r[number].astype(x.dtype, copy=False), len(x)).T
        function = recurrences.limited(functions[number][0], clip)

        def step(gates: Array, h: Array) -> tuple[Array]:
            return (function(gates + h @ transposed),)

        return gates, step

    return recurrences.recur(LAYER, inputs, cell, direction=direction, **attributes)


@v1.lower
def lower(
    x: Expression, w: Expression, r: Expression, /, *optional: Expression | None, activations: Sequence[str],
    direction: str, **attributes: Any,
) -> tuple[Expression, ...]:  # fmt: skip
    def cell(gates: Gates, states: Sequence[Expression]) -> tuple[Expression]:
        (function,) = gates.functions
        return (function(gates.input(0, states[0])),)

    inputs, names = RecurrentInputs(x, w, r, *optional), _of_directions(activations, direction)
    return recurrence_kernels.recur(LAYER, inputs, cell, activations=names, direction=direction, **attributes)


def _of_directions(activations: Sequence[str], direction: str) -> Sequence[str]:
    """Return the function of each direction: the default has two, also for a layer of one direction."""
    return activations if direction == "bidirectional" else activations[:1]


v7.upgrade(recurrence_adapters.drop_output_sequence("RNN"))
v7.downgrade(recurrence_adapters.add_output_sequence("RNN"))
v14.downgrade(recurrence_adapters.drop_layout("RNN", STATES))


@v14.gradient
def gradient(
    g: Gradient, x: Value, w: Value, r: Value, b: Value | None = None, lens: Value | None = None,
    h: Value | None = None, /, **attributes: Any,
) -> tuple[Value | None, ...]:  # fmt: skip
    attributes["activations"] = _of_directions(attributes["activations"], attributes["direction"])
    functions = recurrence_gradients.functions_of(g, LAYER, x, **attributes)

    def of_direction(d: Direction, number: int) -> Gradients:
        (function,), weights, states = functions[number], d.inputs.r, d.states
        sums = g.Add(d.of_inputs(2), g.MatMul(states, g.Transpose(weights, perm=[1, 0])))

        def step(b: Builder, carried: Sequence[Value], items: Sequence[Value]) -> Carried:
            (dh,), (slope, *kept) = carried, items
            gate = b.Mul(dh, slope)
            before = b.MatMul(gate, weights)
            return [b.Add(before, b.Mul(dh, kept[0])) if kept else before], [gate]

        dh, gates = d.back([d.active(function.slope(sums)), *d.kept()], step, 1)
        return d.finish(gates, [dh], of_r=gates, d_r=d.product(gates, states))

    inputs = RecurrentInputs(x, w, r, b, lens, h)
    return recurrence_gradients.gradient(g, inputs, LAYER.states, of_direction, **attributes)[:6]


@rnn.examples
def uniform() -> Iterator[Example]:
    """Equal sequences through one unit."""
    hs = _by_scalars(*recurrence_examples.NUMBERS, 0.1, 3)
    unit = recurrence_examples.UnitLayer(1, hs, [(0.1, hs[-1])])
    yield from recurrence_examples.over_time(unit, [1, 7, 14, 22], output_sequence=1, no_layout=7, layout=14)
    yield recurrence_examples.both_ways(unit, 7)


@rnn.examples
def by_hand() -> Iterator[Example]:
    """Two units whose states enter each other: `h = relu(W x + R h + 1 - 3)`."""
    x = np.array([1, 2], np.float32).reshape(2, 1, 1)
    call, relu = (x, [[[2], [3]]], [[[0, 1], [-1, 0]]], [[1, 1, -3, -3]]), ["Relu"]
    # first relu([2 - 2, 3 - 2]), then relu([4 + 1 - 2, 6 - 0 - 2])
    y = np.array([[0, 1], [3, 4]], np.float32).reshape(2, 1, 1, 2)
    yield Example(7, *call, outputs=2, activations=relu, expect=[y, y[-1]])
    yield Example(7, *call, activations=relu, clip=2.0, expect=[np.minimum(y, 2)])
    # first 2 [0, 1] - 1, then 2 [4 + 1 - 2, 6 + 1 - 2] - 1
    affine: dict[str, Any] = {"activation_alpha": [2.0], "activation_beta": [-1.0]}
    yield Example(14, *call, activations=["Affine"], **affine, expect=[[[[[-1, 1]]], [[[5, 9]]]]])


def _by_scalars(x: float, w: float, r: float, h: float, steps: int) -> list[float]:
    outputs: list[float] = []
    for _ in range(steps):
        h = math.tanh(w * x + r * h)
        outputs.append(h)
    return outputs
