"""LSTM: a recurrent layer with gates and a cell state."""

import math
from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families import products, recurrence_adapters, recurrence_shapes, recurrences
from sabir.opsets.families.recurrence_shapes import Inputs
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    tensors,
)

lstm = Operator(
    "LSTM",
    summary="Long short-term memory, step by step: `c = sigmoid(f) c + sigmoid(i) tanh(g)`, "
    "`h = sigmoid(o) tanh(c)`, where the gates i, o, f, g are `W x + R h + b`.",
)

T = Constraint("T", FLOATS)
T1 = Constraint("T1", tensors("int32"))

v1 = lstm.first(
    1,
    inputs=[
        Input("X", T, "Shape (time, batch, input).", differentiable=True),
        Input("W", T, "Shape (directions, 4 hidden, input): gates i, o, f, g.", differentiable=True),
        Input("R", T, "Shape (directions, 4 hidden, hidden): the same gates.", differentiable=True),
        Input("B", T, "(directions, 8 hidden): biases of W, then of R.", optional=True, differentiable=True),
        Input("sequence_lens", T1, "(batch): the steps of each.", optional=True, differentiable=False),
        Input("initial_h", T, "Shape (directions, batch, hidden).", optional=True, differentiable=False),
        Input("initial_c", T, "Shape (directions, batch, hidden).", optional=True, differentiable=False),
        Input("P", T, "(directions, 3 hidden): from c to i, o, f.", optional=True, differentiable=True),
    ],
    outputs=[
        Output("Y", T, "(time, directions, batch, hidden): every h.", optional=True, differentiable=True),
        Output("Y_h", T, "(directions, batch, hidden): the last h.", optional=True, differentiable=True),
        Output("Y_c", T, "(directions, batch, hidden): the last c.", optional=True, differentiable=True),
    ],
    attributes=[
        Attribute(
            "clip", "float", "What the gates' functions see is limited to [-clip, clip]; 0 does not clip."
        ),
        Attribute("activation_beta", "floats", "Second parameters, in turn to the functions that take one."),
        Attribute("output_sequence", "int", "0: Y need not be given.", default=0),
        Attribute("activation_alpha", "floats", "First parameters, in turn to the functions that take one."),
        Attribute("hidden_size", "int", "The size of h, as R also says."),
        Attribute(
            "direction",
            "string",
            "forward, reverse or bidirectional.",
            default="forward",
            values=recurrence_shapes.DIRECTIONS,
        ),
        Attribute("input_forget", "int", "1: the forget gate is one minus the input gate.", default=0),
        Attribute(
            "activations",
            "strings",
            "Of i, o, f, of g, and of c: Sigmoid, Tanh, Tanh per direction.",
            values=recurrences.ACTIVATIONS,
        ),
    ],
)
v7 = v1.evolve(7, "Drops `output_sequence`: Y is given where it is named.", drop=["output_sequence"])
v14 = v7.extend(
    14,
    "`layout` lets the batch come first.",
    attributes=[
        Attribute(
            "layout",
            "int",
            "1: the batch is the first dimension of X, states, outputs.",
            default=0,
            values=recurrence_shapes.LAYOUTS,
        )
    ],
)
v22 = v14.widen(22, T=BFLOAT16)

GATES = 4
LAYER = recurrences.Layer(GATES, 2, ("Sigmoid", "Tanh", "Tanh"))
STATES = slice(4, 6)  # where the initial states stand behind X


@v1.infer
def infer(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    x: TensorType,
    w: TensorType,
    r: TensorType,
    b: TensorType | None = None,
    lens: TensorType | None = None,
    h: TensorType | None = None,
    c: TensorType | None = None,
    p: TensorType | None = None,
    /,
    *,
    activations: Sequence[str] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int = 0,
) -> tuple[TensorType, ...]:
    return recurrences.infer(
        LAYER,
        Inputs(x, w, r, b, lens, h, c, p),
        activations=activations,
        clip=clip,
        direction=direction,
        hidden_size=hidden_size,
        layout=layout,
    )


@lstm.check
def check(*_: TensorType | None, clip: float | None) -> Iterator[str]:
    yield from recurrences.doubts(clip)


@v1.evaluate
def evaluate(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lens: Array | None = None,
    h: Array | None = None,
    c: Array | None = None,
    p: Array | None = None,
    /,
    *,
    activations: Sequence[str] | None,
    activation_alpha: Sequence[float] | None,
    activation_beta: Sequence[float] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    input_forget: int,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Array, ...]:
    functions = recurrences.chosen(LAYER, activations, activation_alpha, activation_beta, direction=direction)

    def cell(x: Array, way: int) -> tuple[Array, recurrences.Step]:
        parts = [None if part is None else part[way].astype(x.dtype, copy=False) for part in (b, p)]
        bias, peepholes = parts
        gates = products.matmul(x, w[way].T.astype(x.dtype, copy=False))
        if bias is not None:
            gates += bias.reshape(2, -1).sum(axis=0)
        of_gates, of_input, of_cell = functions[way]
        chosen = recurrences.limited(of_gates, clip), recurrences.limited(of_input, clip), of_cell
        return gates, _step(r[way].astype(x.dtype, copy=False), peepholes, chosen, coupled=input_forget != 0)

    return recurrences.recur(
        LAYER,
        Inputs(x, w, r, b, lens, h, c, p),
        cell,
        direction=direction,
        hidden_size=hidden_size,
        layout=layout,
    )


def _step(
    r: Array, p: Array | None, functions: tuple[recurrences.Activation, ...], *, coupled: bool
) -> recurrences.Step:
    """Return one step of one direction; the three gates go through their function together where they can."""
    transposed, size = r.T, r.shape[1]
    of_gates, of_input, of_cell = functions

    def step(gates: Array, h: Array, c: Array) -> tuple[Array, Array]:
        sums = np.matmul(h, transposed)
        sums += gates
        i, o, f = (sums[:, k * size : (k + 1) * size] for k in range(GATES - 1))
        if p is None:
            y = of_gates(sums[:, : (GATES - 1) * size])
            i, o, f = y[:, :size], y[:, size : 2 * size], y[:, 2 * size :]
        else:
            i, f = of_gates(i + p[:size] * c), of_gates(f + p[2 * size :] * c)
        g = of_input(sums[:, (GATES - 1) * size :])
        g *= i
        c = (1 - i if coupled else f) * c
        c += g
        if p is not None:
            o = of_gates(o + p[size : 2 * size] * c)
        h = of_cell(c)
        h *= o
        return h, c

    return step


v7.upgrade(recurrence_adapters.sequence_goes("LSTM"))
v7.downgrade(recurrence_adapters.sequence_comes("LSTM"))
v14.downgrade(recurrence_adapters.batch_comes_second("LSTM", STATES))


@lstm.examples
def over_time() -> Iterator[Example]:
    """Two equal sequences through one unit whose gates share one weight."""
    hs, c = _by_scalars(0.5, 0.8, -0.3, 0.1, 0.2, 3)
    x, w, r = _filled(0.5, 3, 2, 1), _filled(0.8, 1, 4, 1), _filled(-0.3, 1, 4, 1)
    h0, c0 = _filled(0.1, 1, 2, 1), _filled(0.2, 1, 2, 1)
    y, yc = np.array(hs, np.float32).reshape(3, 1, 1, 1).repeat(2, 2), _filled(c, 1, 2, 1)
    for opset in (1, 7, 14, 22):
        yield Example(opset, x, w, r, None, None, h0, c0, outputs=3, hidden_size=1, expect=[y, y[-1], yc])
    yield Example(1, x, w, r, None, None, h0, c0, output_sequence=1, direction="reverse", expect=[y[::-1]])
    batch_first = [x.swapaxes(0, 1), w, r, None, None, h0.swapaxes(0, 1), c0.swapaxes(0, 1)]
    moved = [y.transpose(2, 0, 1, 3), y[-1].swapaxes(0, 1), yc.swapaxes(0, 1)]
    yield Example(14, *batch_first, outputs=3, layout=1, expect=moved)
    empty = np.zeros((0, 1, 2, 1), np.float32)
    yield Example(7, x[:0], w, r, None, None, h0, c0, outputs=3, expect=[empty, h0, c0])
    for kind in (np.float16, ml_dtypes.bfloat16):
        given = [None if v is None else v.astype(kind) for v in (x, w, r, None, None, h0, c0)]
        yield Example(22, *given, expect=[y.astype(kind)], tolerance=2e-3)


@lstm.examples
def both_ways() -> Iterator[Example]:
    """As before, forth and back; the second sequence ends after one step."""
    (h1, h2, h3), _ = _by_scalars(0.5, 0.8, -0.3, 0.1, 0.2, 3)
    weights = [_filled(0.8, 2, 4, 1), _filled(-0.3, 2, 4, 1)]
    lens, states = np.array([3, 1], np.int32), [_filled(0.1, 2, 2, 1), _filled(0.2, 2, 2, 1)]
    y = np.array([[[h1, h1], [h3, h1]], [[h2, 0], [h2, 0]], [[h3, 0], [h1, 0]]], np.float32)[..., None]
    last = np.array([[h3, h1]] * 2, np.float32)[..., None]
    given = [_filled(0.5, 3, 2, 1), *weights, None, lens, *states]
    yield Example(7, *given, outputs=2, direction="bidirectional", hidden_size=1, expect=[y, last])


@lstm.examples
def one_step() -> Iterator[Example]:
    """One step of one unit, with functions that let it be followed by hand."""
    x, w, r = (np.array(v, np.float32).reshape(1, -1, 1) for v in ([2], [1, 2, 3, 4], [0, 0, 0, 1]))
    b, p = np.array([[1, 0, 0, 0, 0, 0, -5, 1]], np.float32), np.array([[1, 0.5, -1]], np.float32)
    given = [x, w, r, b, None, _filled(1, 1, 1, 1), _filled(2, 1, 1, 1)]
    functions = ["Relu", "Affine", "LeakyRelu"]

    def result(h: float, c: float) -> list[Array]:
        return [_filled(h, 1, 1, 1, 1), _filled(h, 1, 1, 1), _filled(c, 1, 1, 1)]

    # i, o, f, g = relu([2 + 1, 4, 6 - 5]), 8 + 1 + 1: c = 1 * 2 + 3 * 10, h = 4 c
    yield Example(14, *given, outputs=3, activations=functions, expect=result(128, 32))
    # peepholes: i = 3 + 2, f = relu(1 - 2), c = 5 * 10, o = 4 + 25
    yield Example(14, *given, p, outputs=3, activations=functions, expect=result(1450, 50))
    # the forget gate is 1 - i = -2, so c = -4 + 30
    yield Example(14, *given, outputs=3, activations=functions, input_forget=1, expect=result(104, 26))
    # limited to 2: i, o, f, g = 2, 2, 1, 2; c itself is not
    yield Example(14, *given, outputs=3, activations=functions, clip=2.0, expect=result(12, 6))
    # g = 0.5 * 10 - 10 = -5 and c = 2 - 15, of which h takes a tenth
    alpha, beta = [0.5, 0.1], [-10.0]
    yield Example(
        14, *given, outputs=3, activations=functions, activation_alpha=alpha, activation_beta=beta,
        expect=result(-5.2, -13),
    )  # fmt: skip


def _filled(value: float, *shape: int) -> Array:
    return np.full(shape, value, np.float32)


def _by_scalars(x: float, w: float, r: float, h: float, c: float, steps: int) -> tuple[list[float], float]:
    outputs: list[float] = []
    for _ in range(steps):
        z = w * x + r * h
        gate = 1 / (1 + math.exp(-z))
        c = gate * c + gate * math.tanh(z)
        h = gate * math.tanh(c)
        outputs.append(h)
    return outputs, c
