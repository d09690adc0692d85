"""RNN: the plain recurrent layer."""

import math
from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families import products, recurrence_adapters, recurrence_shapes, recurrences
from sabir.opsets.families.recurrence_shapes import Inputs
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, tensors

rnn = Operator("RNN", summary="A recurrent layer, step by step: `h = tanh(W x + R h + b)`.")

T = Constraint("T", FLOATS)
T1 = Constraint("T1", tensors("int32"))

v1 = rnn.first(
    1,
    inputs=[
        Input("X", T, "Shape (time, batch, input).", differentiable=True),
        Input("W", T, "Shape (directions, hidden, input).", differentiable=True),
        Input("R", T, "Shape (directions, hidden, hidden).", differentiable=True),
        Input("B", T, "(directions, 2 hidden): biases of W, then of R.", optional=True, differentiable=True),
        Input("sequence_lens", T1, "(batch): the steps of each.", optional=True, differentiable=False),
        Input("initial_h", T, "Shape (directions, batch, hidden).", optional=True, differentiable=False),
    ],
    outputs=[
        Output("Y", T, "(time, directions, batch, hidden): every h.", optional=True, differentiable=True),
        Output("Y_h", T, "(directions, batch, hidden): the last h.", optional=True, differentiable=True),
    ],
    attributes=[
        Attribute("clip", "float", "What the function sees is limited to [-clip, clip]; 0 does not clip."),
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
        Attribute(
            "activations",
            "strings",
            "The function of each direction.",
            default=("Tanh", "Tanh"),
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

STATES = slice(4, 5)  # where the initial state stands behind X


LAYER = recurrences.Layer(1, 1, ("Tanh",))


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
    activations: Sequence[str],
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int = 0,
) -> tuple[TensorType, ...]:
    return recurrences.infer(
        LAYER,
        Inputs(x, w, r, b, lens, h),
        activations=_of_ways(activations, direction),
        clip=clip,
        direction=direction,
        hidden_size=hidden_size,
        layout=layout,
    )


@rnn.check
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
    activations: Sequence[str],
    activation_alpha: Sequence[float] | None,
    activation_beta: Sequence[float] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Array, ...]:
    functions = recurrences.chosen(
        LAYER, _of_ways(activations, direction), activation_alpha, activation_beta, direction=direction
    )

    def cell(x: Array, way: int) -> tuple[Array, recurrences.Step]:
        gates = products.matmul(x, w[way].T.astype(x.dtype, copy=False))
        if b is not None:
            gates += b[way].astype(x.dtype, copy=False).reshape(2, -1).sum(axis=0)
        transposed = r[way].T.astype(x.dtype, copy=False)
        function = recurrences.limited(functions[way][0], clip)

        def step(gates: Array, h: Array) -> tuple[Array]:
            return (function(gates + h @ transposed),)

        return gates, step

    return recurrences.recur(
        LAYER,
        Inputs(x, w, r, b, lens, h),
        cell,
        direction=direction,
        hidden_size=hidden_size,
        layout=layout,
    )


def _of_ways(activations: Sequence[str], direction: str) -> Sequence[str]:
    """Return the functions of each direction: the default names two, and a layer of one way has one."""
    return activations if direction == "bidirectional" else activations[:1]


v7.upgrade(recurrence_adapters.sequence_goes("RNN"))
v7.downgrade(recurrence_adapters.sequence_comes("RNN"))
v14.downgrade(recurrence_adapters.batch_comes_second("RNN", STATES))


@rnn.examples
def over_time() -> Iterator[Example]:
    """Two equal sequences through one unit."""
    hs = _by_scalars(0.5, 0.8, -0.3, 0.1, 3)
    x, w, r, h = _filled(0.5, 3, 2, 1), _filled(0.8, 1, 1, 1), _filled(-0.3, 1, 1, 1), _filled(0.1, 1, 2, 1)
    y = np.array(hs, np.float32).reshape(3, 1, 1, 1).repeat(2, 2)
    for opset in (1, 7, 14, 22):
        yield Example(opset, x, w, r, None, None, h, outputs=2, hidden_size=1, expect=[y, y[-1]])
    yield Example(1, x, w, r, None, None, h, output_sequence=1, direction="reverse", expect=[y[::-1]])
    first, moved = [x.swapaxes(0, 1), w, r, None, None, h.swapaxes(0, 1)], y.transpose(2, 0, 1, 3)
    yield Example(14, *first, outputs=2, layout=1, expect=[moved, y[-1].swapaxes(0, 1)])
    yield Example(7, x[:0], w, r, None, None, h, outputs=2, expect=[np.zeros((0, 1, 2, 1), np.float32), h])
    for kind in (np.float16, ml_dtypes.bfloat16):
        given = [None if v is None else v.astype(kind) for v in (x, w, r, None, None, h)]
        yield Example(22, *given, expect=[y.astype(kind)], tolerance=2e-3)


@rnn.examples
def both_ways() -> Iterator[Example]:
    """As before, forth and back; the second sequence ends after one step."""
    h1, h2, h3 = _by_scalars(0.5, 0.8, -0.3, 0.1, 3)
    lens, h = np.array([3, 1], np.int32), _filled(0.1, 2, 2, 1)
    y = np.array([[[h1, h1], [h3, h1]], [[h2, 0], [h2, 0]], [[h3, 0], [h1, 0]]], np.float32)[..., None]
    last = np.array([[h3, h1]] * 2, np.float32)[..., None]
    given = [_filled(0.5, 3, 2, 1), _filled(0.8, 2, 1, 1), _filled(-0.3, 2, 1, 1), None, lens, h]
    yield Example(7, *given, outputs=2, direction="bidirectional", hidden_size=1, expect=[y, last])


@rnn.examples
def by_hand() -> Iterator[Example]:
    """Two units that feed each other: `h = relu(W x + R h + 1 - 3)`."""
    x = np.array([1, 2], np.float32).reshape(2, 1, 1)
    w, r = np.array([[[2], [3]]], np.float32), np.array([[[0, 1], [-1, 0]]], np.float32)
    given, relu = [x, w, r, np.array([[1, 1, -3, -3]], np.float32)], ["Relu"]
    # first relu([2 - 2, 3 - 2]), then relu([4 + 1 - 2, 6 - 0 - 2])
    y = np.array([[0, 1], [3, 4]], np.float32).reshape(2, 1, 1, 2)
    yield Example(7, *given, outputs=2, activations=relu, expect=[y, y[-1]])
    yield Example(7, *given, activations=relu, clip=2.0, expect=[np.minimum(y, 2)])
    # first 2 [0, 1] - 1, then 2 [4 + 1 - 2, 6 + 1 - 2] - 1
    y = np.array([[-1, 1], [5, 9]], np.float32).reshape(2, 1, 1, 2)
    yield Example(
        14, *given, activations=["Affine"], activation_alpha=[2.0], activation_beta=[-1.0], expect=[y]
    )


def _filled(value: float, *shape: int) -> Array:
    return np.full(shape, value, np.float32)


def _by_scalars(x: float, w: float, r: float, h: float, steps: int) -> list[float]:
    outputs: list[float] = []
    for _ in range(steps):
        h = math.tanh(w * x + r * h)
        outputs.append(h)
    return outputs
