"""LSTM: a recurrent layer with gates and a cell state."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir import loops
from sabir.ir import TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.products import products
from sabir.opsets.families.recurrence import (
    lstm_gradients,
    lstm_steps,
    recurrence_adapters,
    recurrence_examples,
    recurrence_gradients,
    recurrence_kernels,
    recurrences,
)
from sabir.opsets.families.recurrence import recurrence_ports as ports
from sabir.opsets.families.recurrence.lstm_steps import GATES, LAYER
from sabir.opsets.families.recurrence.recurrence_gradients import Direction, Gradients
from sabir.opsets.families.recurrence.recurrence_kernels import Gates
from sabir.opsets.families.recurrence.recurrence_shapes import RecurrentInputs
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Example, Input, Operator, Output

lstm = Operator(
    "LSTM",
    summary="Long short-term memory, step by step: `c = sigmoid(f) c + sigmoid(i) tanh(g)`, "
    "`h = sigmoid(o) tanh(c)`, where the gates i, o, f, g are `W x + R h + b`.",
)

T = ports.T

v1 = lstm.first(
    1,
    inputs=[
        ports.X,
        Input("W", T, "Shape (directions, 4 hidden, input): gates i, o, f, g.", differentiable=True),
        Input("R", T, "Shape (directions, 4 hidden, hidden): the same gates.", differentiable=True),
        Input("B", T, "(directions, 8 hidden): biases of W, then of R.", optional=True, differentiable=True),
        ports.SEQUENCE_LENS,
        ports.INITIAL_H,
        Input("initial_c", T, "Shape (directions, batch, hidden).", optional=True, differentiable=False),
        Input("P", T, "(directions, 3 hidden): from c to i, o, f.", optional=True, differentiable=True),
    ],
    outputs=[
        ports.Y,
        ports.Y_H,
        Output("Y_c", T, "(directions, batch, hidden): the last c.", optional=True, differentiable=True),
    ],
    attributes=[
        *ports.FIRST_ATTRIBUTES,
        ports.DIRECTION,
        *lstm_steps.ATTRIBUTES,
    ],
)
v7 = v1.evolve(7, "Drops `output_sequence`: Y is computed where the node names it.", drop=["output_sequence"])
v14 = v7.extend(14, "`layout` lets the batch come first.", attributes=[ports.LAYOUT])
v22 = v14.widen(22, T=BFLOAT16)

STATES = slice(4, 6)  # the initial states, counted after X


@v1.infer
def infer(
    x: TensorType, w: TensorType, r: TensorType, /, *optional: TensorType | None, **attributes: Any
) -> tuple[TensorType, ...]:
    return recurrences.infer(LAYER, RecurrentInputs(x, w, r, *optional), **attributes)


lstm.check(recurrences.warn_of_clip)


@v1.evaluate
def evaluate(
    x: Array, w: Array, r: Array, /, *optional: Array | None, activations: Sequence[str] | None,
    activation_alpha: Sequence[float] | None, activation_beta: Sequence[float] | None, clip: float | None,
    direction: str, input_forget: int, **attributes: Any,
) -> tuple[Array, ...]:  # fmt: skip
    inputs = RecurrentInputs(x, w, r, *optional)
    functions = recurrences.activations_of(
        LAYER, activations, activation_alpha, activation_beta, direction=direction
    )

    def cell(x: Array, number: int) -> tuple[Array, recurrences.RecurrentStep]:
        bias, peepholes = (
            part if part is None else part[number].astype(x.dtype, copy=False)
            for part in (inputs.b, inputs.p)
        )
        gates = products.matmul(x, w[number].T.astype(x.dtype, copy=False))
        if bias is not None:
            gates += bias.reshape(2, -1).sum(axis=0)
        weights = recurrences.for_steps(r[number].astype(x.dtype, copy=False), len(x)).T
        limited = lstm_steps.limited(functions[number], clip)
        return gates, lstm_steps.step_of(
            lambda h: np.matmul(h, weights), peepholes, limited, coupled=input_forget != 0
        )

    return recurrences.recur(LAYER, inputs, cell, direction=direction, **attributes)


@v1.lower
def lower(
    x: Expression, w: Expression, r: Expression, /, *optional: Expression | None, input_forget: int,
    **attributes: Any,
) -> tuple[Expression, ...]:  # fmt: skip
    def cell(gates: Gates, states: Sequence[Expression]) -> tuple[Expression, Expression]:
        h, c = states
        of_gates, of_input, _ = gates.functions
        i, o, f, g = (gates.input(number, h) for number in range(GATES))
        if gates.peepholes:
            from_i, _, from_f = gates.peepholes
            i, f = _peeped(i, from_i, c), _peeped(f, from_f, c)
        i = of_gates(i)
        kept = loops.apply("sub", 1, i) if input_forget else of_gates(f)
        new = loops.apply("add", loops.apply("mul", kept, c), loops.apply("mul", i, of_input(g)))
        if gates.peepholes:
            o = _peeped(o, gates.peepholes[1], new)
        return loops.apply("mul", of_gates(o), gates.unlimited[-1](new)), new

    return recurrence_kernels.recur(LAYER, RecurrentInputs(x, w, r, *optional), cell, **attributes)


def _peeped(gate: Expression, peephole: Expression, c: Expression) -> Expression:
    return loops.apply("add", gate, loops.apply("mul", peephole, c))


v7.upgrade(recurrence_adapters.drop_output_sequence("LSTM"))
v7.downgrade(recurrence_adapters.add_output_sequence("LSTM"))
v14.downgrade(recurrence_adapters.drop_layout("LSTM", STATES))


@v14.gradient
def gradient(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  those of the operator
    g: Gradient, x: Value, w: Value, r: Value, b: Value | None = None, lens: Value | None = None,
    h: Value | None = None, c: Value | None = None, p: Value | None = None, /, *, input_forget: int,
    **attributes: Any,
) -> tuple[Value | None, ...]:  # fmt: skip
    functions = recurrence_gradients.functions_of(g, LAYER, x, **attributes)

    def of_direction(d: Direction, number: int) -> Gradients:
        return lstm_gradients.of_direction(d, functions[number], coupled=input_forget != 0)

    inputs = RecurrentInputs(x, w, r, b, lens, h, c, p)
    return recurrence_gradients.gradient(g, inputs, LAYER.states, of_direction, **attributes)


@lstm.examples
def uniform() -> Iterator[Example]:
    """Equal sequences through one unit whose gates share one weight."""
    hs, c = _by_scalars(*recurrence_examples.NUMBERS, 0.1, 0.2, 3)
    unit = recurrence_examples.UnitLayer(GATES, hs, [(0.1, hs[-1]), (0.2, c)])
    yield from recurrence_examples.over_time(unit, [1, 7, 14, 22], output_sequence=1, no_layout=7, layout=14)
    yield recurrence_examples.both_ways(unit, 7)


@lstm.examples
def one_step() -> Iterator[Example]:
    """One step of one unit, with functions that can be computed by hand."""
    w, r, b = [[[1], [2], [3], [4]]], [[[0], [0], [0], [1]]], [[1, 0, 0, 0, 0, 0, -5, 1]]
    call = np.array([[[2]]], np.float32), w, r, b, None, [[[1]]], [[[2]]]
    functions: dict[str, Any] = {"outputs": 3, "activations": ["Relu", "Affine", "LeakyRelu"]}

    def results(h: float, c: float) -> list[Any]:
        return [[[[[h]]]], [[[h]]], [[[c]]]]

    # i, o, f, g = relu([2 + 1, 4, 6 - 5]), 8 + 1 + 1: c = 1 * 2 + 3 * 10, h = 4 c
    yield Example(14, *call, **functions, expect=results(128, 32))
    # peepholes: i = 3 + 2, f = relu(1 - 2), c = 5 * 10, o = 4 + 25
    yield Example(14, *call, [[1, 0.5, -1]], **functions, expect=results(1450, 50))
    # the forget gate is 1 - i = -2, so c = -4 + 30
    yield Example(14, *call, **functions, input_forget=1, expect=results(104, 26))
    # limited to 2: i, o, f, g = 2, 2, 1, 2; c itself is not
    yield Example(14, *call, **functions, clip=2.0, expect=results(12, 6))
    # g = 0.5 * 10 - 10 = -5 and c = 2 - 15, of which h takes a tenth
    parameters: dict[str, Any] = {"activation_alpha": [0.5, 0.1], "activation_beta": [-10.0]}
    yield Example(14, *call, **functions, **parameters, expect=results(-5.2, -13))


def _by_scalars(x: float, w: float, r: float, h: float, c: float, steps: int) -> tuple[list[float], float]:
    outputs: list[float] = []
    for _ in range(steps):
        z = w * x + r * h
        gate = 1 / (1 + math.exp(-z))
        c = gate * c + gate * math.tanh(z)
        h = gate * math.tanh(c)
        outputs.append(h)
    return outputs, c
