"""GRU: a recurrent layer with an update gate and a reset gate."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families import products, recurrence_adapters, recurrence_shapes, recurrences
from sabir.opsets.families.recurrence_shapes import Inputs
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    one_of,
    tensors,
)

gru = Operator(
    "GRU",
    summary="A gated recurrent unit, step by step: `h = (1 - z) g + z h'` after the state `h'`, where "
    "`z, r = sigmoid(W x + R h' + b)` and `g = tanh(W x + R (r h') + b)`.",
)

T = Constraint("T", FLOATS)
T1 = Constraint("T1", tensors("int32"))

MISSPELT = "foward"  # the default direction of the first version
_Y = Output("Y", T, "(time, directions, batch, hidden): every h.", optional=True, differentiable=True)

v1 = gru.first(
    1,
    inputs=[
        Input("X", T, "Shape (time, batch, input).", differentiable=True),
        Input("W", T, "Shape (directions, 3 hidden, input): for z, r, g.", differentiable=True),
        Input("R", T, "Shape (directions, 3 hidden, hidden): for the same.", differentiable=True),
        Input("B", T, "(directions, 6 hidden): biases of W, then of R.", optional=True, differentiable=True),
        Input("sequence_lens", T1, "(batch): the steps of each.", optional=True, differentiable=False),
        Input("initial_h", T, "Shape (directions, batch, hidden).", optional=True, differentiable=False),
    ],
    outputs=[_Y, Output("Y_h", T, "(directions, batch, hidden): the last h.", differentiable=True)],
    attributes=[
        Attribute("clip", "float", "What the functions see is limited to [-clip, clip]; 0 does not clip."),
        Attribute("activation_beta", "floats", "Second parameters, in turn to the functions that take one."),
        Attribute("output_sequence", "int", "0: Y need not be given.", default=0),
        Attribute("activation_alpha", "floats", "First parameters, in turn to the functions that take one."),
        Attribute("hidden_size", "int", "The size of h, as R also says."),
        Attribute(
            "direction",
            "string",
            "forward, reverse or bidirectional.",
            default=MISSPELT,
            values=one_of(*recurrence_shapes.DIRECTIONS.names, aliases={MISSPELT: "forward"}),
        ),
        Attribute(
            "activations",
            "strings",
            "Of z and r, and of g: Sigmoid, Tanh for each direction.",
            values=recurrences.ACTIVATIONS,
        ),
    ],
)
v3 = v1.evolve(
    3,
    "`linear_before_reset` lets the reset gate act after R; Y_h is optional; the default direction is one.",
    outputs=[
        _Y,
        Output("Y_h", T, "(directions, batch, hidden): the last h.", optional=True, differentiable=True),
    ],
    defaults={"direction": "forward"},
    values={"direction": recurrence_shapes.DIRECTIONS},
    add=[
        Attribute("linear_before_reset", "int", "1: `g = tanh(W x + r (R h' + b_R) + b_W)`.", default=0),
    ],
)
v7 = v3.evolve(7, "Drops `output_sequence`: Y is given where it is named.", drop=["output_sequence"])
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

GATES = 3
LAYER = recurrences.Layer(GATES, 1, ("Sigmoid", "Tanh"))
STATES = slice(4, 5)  # where the initial state stands behind X


@v1.infer
def infer(  # ruff: ignore[too-many-arguments]  the operator's signature
    x: TensorType,
    w: TensorType,
    r: TensorType,
    b: TensorType | None = None,
    lens: TensorType | None = None,
    h: TensorType | None = None,
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
        Inputs(x, w, r, b, lens, h),
        activations=activations,
        clip=clip,
        direction=_spelt(direction),
        hidden_size=hidden_size,
        layout=layout,
    )


@gru.check
def check(*_: TensorType | None, clip: float | None) -> Iterator[str]:
    yield from recurrences.doubts(clip)


@v1.evaluate
def evaluate(  # ruff: ignore[too-many-arguments]  the operator's signature
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lens: Array | None = None,
    h: Array | None = None,
    /,
    *,
    activations: Sequence[str] | None,
    activation_alpha: Sequence[float] | None,
    activation_beta: Sequence[float] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int = 0,
    linear_before_reset: int = 0,
    output_sequence: int = 0,
) -> tuple[Array, ...]:
    direction = _spelt(direction)
    functions = recurrences.chosen(LAYER, activations, activation_alpha, activation_beta, direction=direction)

    def cell(x: Array, way: int) -> tuple[Array, recurrences.Step]:
        gates = products.matmul(x, w[way].T.astype(x.dtype, copy=False))
        late = None  # the bias that the reset gate lets through or not
        if b is not None:
            of_w, of_r = b[way].astype(x.dtype, copy=False).reshape(2, -1)
            inner = (2 if linear_before_reset else GATES) * r.shape[-1]
            gates += of_w
            gates[..., :inner] += of_r[:inner]
            late = of_r[inner:] if linear_before_reset else None
        chosen = [recurrences.limited(f, clip) for f in functions[way]]
        weights = r[way].astype(x.dtype, copy=False)
        step = _late_reset(weights, chosen, late) if linear_before_reset else _early_reset(weights, chosen)
        return gates, step

    return recurrences.recur(
        LAYER,
        Inputs(x, w, r, b, lens, h),
        cell,
        direction=direction,
        hidden_size=hidden_size,
        layout=layout,
    )


def _early_reset(r: Array, functions: Sequence[recurrences.Activation]) -> recurrences.Step:
    """Return one step in which the reset gate scales the state before R."""
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
) -> recurrences.Step:
    """Return one step in which the reset gate scales what R and its bias make of the state."""
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


def _spelt(direction: str) -> str:
    return "forward" if direction == MISSPELT else direction


@v3.upgrade
def reset_may_come_late(
    b: Builder, *inputs: Value | None, call: Call, direction: str, **attributes: Any
) -> Any:
    return b.op("GRU", *inputs, outputs=len(call.outputs), direction=_spelt(direction), **attributes)


@v3.downgrade
def reset_comes_first(
    b: Builder, *inputs: Value | None, call: Call, linear_before_reset: int, **attributes: Any
) -> Any:
    if linear_before_reset:
        raise Unconvertible("GRU-1 has the reset gate act before R, and `linear_before_reset` after")
    made = cast("tuple[Value, ...]", b.op("GRU", *inputs, outputs=2, **attributes))  # Y_h may not be left out
    return made[: len(call.outputs)]


v7.upgrade(recurrence_adapters.sequence_goes("GRU"))
v7.downgrade(recurrence_adapters.sequence_comes("GRU"))
v14.downgrade(recurrence_adapters.batch_comes_second("GRU", STATES))


@gru.examples
def over_time() -> Iterator[Example]:
    """Two equal sequences through one unit whose gates share one weight."""
    early, late = (_by_scalars(0.5, 0.8, -0.3, 0.1, 3, late=late) for late in (False, True))
    x, w, r, h = _filled(0.5, 3, 2, 1), _filled(0.8, 1, 3, 1), _filled(-0.3, 1, 3, 1), _filled(0.1, 1, 2, 1)
    y = np.array(early, np.float32).reshape(3, 1, 1, 1).repeat(2, 2)
    for opset in (1, 3, 7, 14, 22):
        yield Example(opset, x, w, r, None, None, h, outputs=2, hidden_size=1, expect=[y, y[-1]])
        if opset > 1:
            after = np.array(late, np.float32).reshape(3, 1, 1, 1).repeat(2, 2)
            yield Example(opset, x, w, r, None, None, h, linear_before_reset=1, expect=[after])
    yield Example(3, x, w, r, None, None, h, output_sequence=1, direction="reverse", expect=[y[::-1]])
    first, moved = [x.swapaxes(0, 1), w, r, None, None, h.swapaxes(0, 1)], y.transpose(2, 0, 1, 3)
    yield Example(14, *first, outputs=2, layout=1, expect=[moved, y[-1].swapaxes(0, 1)])
    yield Example(7, x[:0], w, r, None, None, h, outputs=2, expect=[np.zeros((0, 1, 2, 1), np.float32), h])
    for kind in (np.float16, ml_dtypes.bfloat16):
        given = [None if v is None else v.astype(kind) for v in (x, w, r, None, None, h)]
        yield Example(22, *given, expect=[y.astype(kind)], tolerance=2e-3)


@gru.examples
def both_ways() -> Iterator[Example]:
    """As before, forth and back; the second sequence ends after one step."""
    h1, h2, h3 = _by_scalars(0.5, 0.8, -0.3, 0.1, 3, late=False)
    lens, h = np.array([3, 1], np.int32), _filled(0.1, 2, 2, 1)
    y = np.array([[[h1, h1], [h3, h1]], [[h2, 0], [h2, 0]], [[h3, 0], [h1, 0]]], np.float32)[..., None]
    last = np.array([[h3, h1]] * 2, np.float32)[..., None]
    given = [_filled(0.5, 3, 2, 1), _filled(0.8, 2, 3, 1), _filled(-0.3, 2, 3, 1), None, lens, h]
    yield Example(7, *given, outputs=2, direction="bidirectional", hidden_size=1, expect=[y, last])


@gru.examples
def one_step() -> Iterator[Example]:
    """One step of one unit, with functions that let it be followed by hand."""
    x, w, r = (np.array(v, np.float32).reshape(1, -1, 1) for v in ([2], [1, 2, 3], [1, 0, 2]))
    given = [x, w, r, np.array([[-5, 0, 1, 1, -1, 4]], np.float32), None, _filled(3, 1, 1, 1)]
    functions = ["Relu", "Affine"]
    # z = relu(2 + 3 - 4) = 1, r = relu(4 - 1) = 3, so all is kept; g = 6 + 2 * (3 * 3) + 5
    yield Example(14, *given, outputs=2, activations=functions, expect=[_filled(3, 1, 1, 1, 1), given[-1]])
    # z limited to 0.5, r to 0.5, g to 0.5 as an argument, -2 * 0.5 + 4 as a value
    yield Example(
        14, *given, activations=functions, activation_alpha=[-2.0], activation_beta=[4.0], clip=0.5,
        expect=[_filled(3, 1, 1, 1, 1)],
    )  # fmt: skip
    given[0] = _filled(2.5, 1, 1, 1)  # z = 1.5: half of g is taken away
    # r = 4; g = 7.5 + 2 * 12 + 5 = 36.5; then h = -0.5 * 36.5 + 1.5 * 3
    yield Example(7, *given, activations=functions, expect=[_filled(-13.75, 1, 1, 1, 1)])
    # g = 7.5 + 4 * (2 * 3 + 4) + 1 = 48.5; then h = -0.5 * 48.5 + 1.5 * 3
    y = _filled(-19.75, 1, 1, 1, 1)
    yield Example(7, *given, activations=functions, linear_before_reset=1, expect=[y])


def _filled(value: float, *shape: int) -> Array:
    return np.full(shape, value, np.float32)


def _by_scalars(x: float, w: float, r: float, h: float, steps: int, *, late: bool) -> list[float]:
    outputs: list[float] = []
    for _ in range(steps):
        gate = 1 / (1 + math.exp(-(w * x + r * h)))
        inner = gate * (r * h) if late else r * (gate * h)
        h = (1 - gate) * math.tanh(w * x + inner) + gate * h
        outputs.append(h)
    return outputs
