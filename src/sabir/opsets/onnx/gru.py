"""GRU: a recurrent layer with an update gate and a reset gate."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from sabir import loops
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.products import products
from sabir.opsets.families.recurrence import (
    gru_gradients,
    recurrence_adapters,
    recurrence_examples,
    recurrence_gradients,
    recurrence_kernels,
    recurrences,
)
from sabir.opsets.families.recurrence import recurrence_ports as ports
from sabir.opsets.families.recurrence.recurrence_gradients import Direction, Gradients
from sabir.opsets.families.recurrence.recurrence_kernels import Gates
from sabir.opsets.families.recurrence.recurrence_shapes import DIRECTIONS, RecurrentInputs
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Attribute, Call, Example, Input, Operator, Output, Unconvertible, one_of

gru = Operator(
    "GRU",
    summary="A gated recurrent unit, step by step: `h = (1 - z) g + z h'` after the state `h'`, where "
    "`z, r = sigmoid(W x + R h' + b)` and `g = tanh(W x + R (r h') + b)`.",
)

T = ports.T

MISSPELT = "foward"  # the default direction of the first version

v1 = gru.first(
    1,
    inputs=[
        ports.X,
        Input("W", T, "Shape (directions, 3 hidden, input): for z, r, g.", differentiable=True),
        Input("R", T, "Shape (directions, 3 hidden, hidden): for z, r, g.", differentiable=True),
        Input("B", T, "(directions, 6 hidden): biases of W, then of R.", optional=True, differentiable=True),
        ports.SEQUENCE_LENS,
        ports.INITIAL_H,
    ],
    outputs=[ports.Y, Output("Y_h", T, ports.Y_H.doc, differentiable=True)],
    attributes=[
        *ports.FIRST_ATTRIBUTES,
        Attribute(
            "direction",
            "string",
            ports.DIRECTION.doc,
            default=MISSPELT,
            values=one_of(*DIRECTIONS.names, aliases={MISSPELT: "forward"}),
        ),
        Attribute(
            "activations",
            "strings",
            "Of z and r, and of g, for each direction; Sigmoid, Tanh by default.",
            values=recurrences.ACTIVATIONS,
        ),
    ],
)
v3 = v1.evolve(
    3,
    "Adds `linear_before_reset`, which applies the reset gate after R; Y_h is optional; corrects the default "
    "direction.",
    outputs=[ports.Y, ports.Y_H],
    defaults={"direction": "forward"},
    values={"direction": DIRECTIONS},
    add=[Attribute("linear_before_reset", "int", "1: `g = tanh(W x + r (R h' + b_R) + b_W)`.", default=0)],
)
v7 = v3.evolve(7, "Drops `output_sequence`: Y is computed where the node names it.", drop=["output_sequence"])
v14 = v7.extend(14, "`layout` lets the batch come first.", attributes=[ports.LAYOUT])
v22 = v14.widen(22, T=BFLOAT16)

GATES = 3
LAYER = recurrences.Layer(GATES, 1, ("Sigmoid", "Tanh"))
STATES = slice(4, 5)  # the initial state, counted after X


@v1.infer
def infer(
    x: TensorType, w: TensorType, r: TensorType, /, *optional: TensorType | None, direction: str,
    **attributes: Any,
) -> tuple[TensorType, ...]:  # fmt: skip
    inputs = RecurrentInputs(x, w, r, *optional)
    return recurrences.infer(LAYER, inputs, direction=_spelt(direction), **attributes)


gru.check(recurrences.warn_of_clip)


@v1.evaluate
def evaluate(
    x: Array, w: Array, r: Array, /, *optional: Array | None, activations: Sequence[str] | None,
    activation_alpha: Sequence[float] | None, activation_beta: Sequence[float] | None, clip: float | None,
    direction: str, linear_before_reset: int = 0, **attributes: Any,
) -> tuple[Array, ...]:  # fmt: skip
    inputs, direction = RecurrentInputs(x, w, r, *optional), _spelt(direction)
    functions = recurrences.activations_of(
        LAYER, activations, activation_alpha, activation_beta, direction=direction
    )

    def cell(x: Array, number: int) -> tuple[Array, recurrences.RecurrentStep]:
        gates = products.matmul(x, w[number].T.astype(x.dtype, copy=False))
        reset_bias = None  # the bias that the reset gate multiplies
        if inputs.b is not None:
            of_w, of_r = inputs.b[number].astype(x.dtype, copy=False).reshape(2, -1)
            inner = (2 if linear_before_reset else GATES) * r.shape[-1]
            gates += of_w
            gates[..., :inner] += of_r[:inner]
            reset_bias = of_r[inner:] if linear_before_reset else None
        limited = [recurrences.limited(f, clip) for f in functions[number]]
        weights = recurrences.for_steps(r[number].astype(x.dtype, copy=False), len(x))
        if linear_before_reset:
            return gates, _late_reset(weights, limited, reset_bias)
        return gates, _early_reset(weights, limited)

    return recurrences.recur(LAYER, inputs, cell, direction=direction, **attributes)


def _early_reset(r: Array, functions: Sequence[recurrences.Activation]) -> recurrences.RecurrentStep:
    """Return the step in which the reset gate multiplies the state before R."""
    size = r.shape[1]
    gate_weights, new_weights = r[: 2 * size].T, r[2 * size :].T
    of_gates, of_new = functions

    def step(gates: Array, h: Array) -> tuple[Array]:
        both = of_gates(gates[:, : 2 * size] + h @ gate_weights)
        z, reset = both[:, :size], both[:, size:]
        new = of_new(gates[:, 2 * size :] + (reset * h) @ new_weights)
        return ((1 - z) * new + z * h,)

    return step


def _late_reset(
    r: Array, functions: Sequence[recurrences.Activation], bias: Array | None
) -> recurrences.RecurrentStep:
    """Return the step in which the reset gate multiplies the product of R and the state, plus its bias."""
    size, transposed = r.shape[1], r.T
    of_gates, of_new = functions

    def step(gates: Array, h: Array) -> tuple[Array]:
        sums = h @ transposed
        both = of_gates(gates[:, : 2 * size] + sums[:, : 2 * size])
        z, reset = both[:, :size], both[:, size:]
        inner = sums[:, 2 * size :] if bias is None else sums[:, 2 * size :] + bias
        new = of_new(gates[:, 2 * size :] + reset * inner)
        return ((1 - z) * new + z * h,)

    return step


@v1.lower
def lower(
    x: Expression, w: Expression, r: Expression, /, *optional: Expression | None, direction: str,
    linear_before_reset: int = 0, **attributes: Any,
) -> tuple[Expression, ...]:  # fmt: skip
    late = linear_before_reset != 0

    def cell(gates: Gates, states: Sequence[Expression]) -> tuple[Expression]:
        (h,) = states
        of_gates, of_new = gates.functions
        inputs = [gates.input(number, h) for number in range(GATES - 1)]
        if gates.biases:
            inputs = [loops.apply("add", x, b) for x, b in zip(inputs, gates.biases, strict=False)]
        z, reset = map(of_gates, inputs)
        if late:
            inner = loops.contract(h, gates.matrices[-1])
            inner = loops.apply("add", inner, gates.biases[-1]) if gates.biases else inner
            new = of_new(loops.apply("add", gates.sums[-1], loops.apply("mul", reset, inner)))
        else:
            new = of_new(gates.input(GATES - 1, loops.apply("mul", reset, h)))
        old = loops.apply("mul", z, h)
        return (loops.apply("add", loops.apply("mul", loops.apply("sub", 1, z), new), old),)

    inputs = RecurrentInputs(x, w, r, *optional)
    return recurrence_kernels.recur(
        LAYER, inputs, cell, direction=_spelt(direction), late_bias=late, **attributes
    )


def _spelt(direction: str) -> str:
    return "forward" if direction == MISSPELT else direction


@v3.upgrade
def correct_direction(
    b: Builder, *inputs: Value | None, call: Call, direction: str, **attributes: Any
) -> Any:
    return b.op("GRU", *inputs, outputs=len(call.outputs), direction=_spelt(direction), **attributes)


@v3.downgrade
def drop_linear_before_reset(
    b: Builder, *inputs: Value | None, call: Call, linear_before_reset: int, **attributes: Any
) -> Any:
    if linear_before_reset:
        raise Unconvertible("GRU:1 applies the reset gate before R, and `linear_before_reset` after it")
    # Y_h may not be omitted
    results = cast("tuple[Value, ...]", b.op("GRU", *inputs, outputs=2, **attributes))
    return results[: len(call.outputs)]


v7.upgrade(recurrence_adapters.drop_output_sequence("GRU"))
v7.downgrade(recurrence_adapters.add_output_sequence("GRU"))
v14.downgrade(recurrence_adapters.drop_layout("GRU", STATES))


@v14.gradient
def gradient(
    g: Gradient, x: Value, w: Value, r: Value, b: Value | None = None, lens: Value | None = None,
    h: Value | None = None, /, *, linear_before_reset: int, **attributes: Any,
) -> tuple[Value | None, ...]:  # fmt: skip
    functions = recurrence_gradients.functions_of(g, LAYER, x, **attributes)

    def of_direction(d: Direction, number: int) -> Gradients:
        if linear_before_reset:
            return gru_gradients.of_late_reset(d, functions[number])
        return gru_gradients.of_early_reset(d, functions[number])

    inputs = RecurrentInputs(x, w, r, b, lens, h)
    return recurrence_gradients.gradient(g, inputs, LAYER.states, of_direction, **attributes)[:6]


@gru.examples
def uniform() -> Iterator[Example]:
    """Equal sequences through one unit whose gates share one weight."""
    early, late = (_by_scalars(*recurrence_examples.NUMBERS, 0.1, 3, late=late) for late in (False, True))
    unit = recurrence_examples.UnitLayer(GATES, early, [(0.1, early[-1])])
    yield from recurrence_examples.over_time(
        unit, [1, 3, 7, 14, 22], output_sequence=3, no_layout=7, layout=14
    )
    yield recurrence_examples.both_ways(unit, 7)
    x, w, r = (np.full(s, v, np.float32) for s, v in (((3, 2, 1), 0.5), ((1, 3, 1), 0.8), ((1, 3, 1), -0.3)))
    after = [[[[h], [h]]] for h in late]
    for opset in (3, 7, 14, 22):
        yield Example(opset, x, w, r, None, None, [[[0.1], [0.1]]], linear_before_reset=1, expect=[after])


@gru.examples
def one_step() -> Iterator[Example]:
    """One step of one unit, with functions that can be computed by hand."""
    x, h = np.array([[[2]]], np.float32), [[[3]]]
    rest = [[[1], [2], [3]]], [[[1], [0], [2]]], [[-5, 0, 1, 1, -1, 4]], None, h
    functions = ["Relu", "Affine"]
    # z = relu(2 + 3 - 4) = 1, r = relu(4 - 1) = 3: the state stays; g = 6 + 2 * (3 * 3) + 5
    yield Example(14, x, *rest, outputs=2, activations=functions, expect=[[h], h])
    # z limited to 0.5, r to 0.5, the argument of g to 0.5, so that g = -2 * 0.5 + 4
    affine: dict[str, Any] = {"activation_alpha": [-2.0], "activation_beta": [4.0], "clip": 0.5}
    yield Example(14, x, *rest, activations=functions, **affine, expect=[[h]])
    x = np.array([[[2.5]]], np.float32)  # z = 1.5: the share of g is -0.5
    # r = 4; g = 7.5 + 2 * 12 + 5 = 36.5; then h = -0.5 * 36.5 + 1.5 * 3
    yield Example(7, x, *rest, activations=functions, expect=[[[[[-13.75]]]]])
    # g = 7.5 + 4 * (2 * 3 + 4) + 1 = 48.5; then h = -0.5 * 48.5 + 1.5 * 3
    yield Example(7, x, *rest, activations=functions, linear_before_reset=1, expect=[[[[[-19.75]]]]])


def _by_scalars(x: float, w: float, r: float, h: float, steps: int, *, late: bool) -> list[float]:
    outputs: list[float] = []
    for _ in range(steps):
        gate = 1 / (1 + math.exp(-(w * x + r * h)))
        inner = gate * (r * h) if late else r * (gate * h)
        h = (1 - gate) * math.tanh(w * x + inner) + gate * h
        outputs.append(h)
    return outputs
