"""DynamicQuantizeLSTM: an LSTM with quantized weights, whose input and state are quantized by their range."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.quantization import quantization
from sabir.opsets.families.quantization.dynamic import quantized_by_range
from sabir.opsets.families.recurrence import lstm_steps, recurrences
from sabir.opsets.families.recurrence import recurrence_ports as ports
from sabir.opsets.families.recurrence.directions import of_direction, time_reversed
from sabir.opsets.families.recurrence.dynamic_lstm_graphs import DynamicLstm
from sabir.opsets.families.recurrence.lstm_steps import LAYER
from sabir.opsets.families.recurrence.recurrence_shapes import RecurrentInputs, directions_of
from sabir.opsets.families.shapes.ranks import check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

dynamic_quantize_lstm = Operator(
    "DynamicQuantizeLSTM",
    domain="com.microsoft",
    summary="LSTM, where X as a whole, and h in each step, are quantized as by DynamicQuantizeLinear and "
    "multiplied by quantized weights; biases, gates and states are floats.",
    body_opset=18,
)

_RANK = 3  # of weights

T = Constraint("T", tensors("float"))
T1 = Constraint("T1", tensors("int32"))
T2 = Constraint("T2", tensors("int8", "uint8"))


def _parameters(weights: str) -> list[Input]:
    return [
        Input(f"{weights}_scale", T, f"The scale of `{weights}`: (directions), or (directions, 4 hidden)."),
        Input(
            f"{weights}_zero_point", T2, f"The number in `{weights}` that represents 0, of the same shape."
        ),
    ]


v1 = dynamic_quantize_lstm.first(
    1,
    inputs=[
        Input("X", T, "Shape (time, batch, input)."),
        Input("W", T2, "Shape (directions, input, 4 hidden): gates i, o, f, g."),
        Input("R", T2, "Shape (directions, hidden, 4 hidden): the same gates."),
        Input("B", T, "(directions, 8 hidden): biases of W, then of R.", optional=True),
        Input("sequence_lens", T1, "(batch): the number of steps of each sequence.", optional=True),
        Input("initial_h", T, "Shape (directions, batch, hidden).", optional=True),
        Input("initial_c", T, "Shape (directions, batch, hidden).", optional=True),
        Input("P", T, "(directions, 3 hidden): from c to i, o, f.", optional=True),
        *_parameters("W"),
        *_parameters("R"),
    ],
    outputs=[
        Output("Y", T, "(time, directions, batch, hidden): every h.", optional=True),
        Output("Y_h", T, "(directions, batch, hidden): the last h.", optional=True),
        Output("Y_c", T, "(directions, batch, hidden): the last c.", optional=True),
    ],
    attributes=[
        ports.CLIP,
        ports.ACTIVATION_ALPHA,
        ports.ACTIVATION_BETA,
        ports.HIDDEN_SIZE,
        ports.DIRECTION,
        *lstm_steps.ATTRIBUTES,
    ],
)


@v1.infer
def infer(x: TensorType, w: TensorType, r: TensorType, /, *rest: TensorType | None, **attributes: Any) -> Any:
    optional, (w_scale, w_zero, r_scale, r_zero) = rest[:-4], rest[-4:]
    for name, weights, pair in (("W", w, (w_scale, w_zero)), ("R", r, (r_scale, r_zero))):
        for part, parameter in zip(("scale", "zero_point"), pair, strict=True):
            _check_parameter(f"{name}_{part}", parameter, weights)
    inputs = RecurrentInputs(x, _transposed(w), _transposed(r), *optional)
    return recurrences.infer(LAYER, inputs, **attributes)


def _check_parameter(name: str, parameter: TensorType | None, weights: TensorType) -> None:
    """Raise InferenceError unless there is one parameter a direction, or one for each of its columns."""
    if parameter is None or parameter.shape is None or weights.shape is None or len(weights.shape) != _RANK:
        return
    directions, _, columns = weights.shape
    check_shape(name, parameter, *((directions,) if len(parameter.shape) == 1 else (directions, columns)))


def _transposed(weights: TensorType) -> TensorType:
    """Return the type of weights as those of an LSTM: (directions, 4 hidden, ...)."""
    if weights.shape is None or len(weights.shape) != _RANK:
        return weights
    return TensorType(weights.element, (weights.shape[0], weights.shape[2], weights.shape[1]))


@v1.evaluate
def evaluate(
    x: Array, w: Array, r: Array, /, *rest: Array | None, activations: Sequence[str] | None,
    activation_alpha: Sequence[float] | None, activation_beta: Sequence[float] | None, direction: str,
    **attributes: Any,
) -> tuple[Array, ...]:  # fmt: skip
    hold(infer, x, w, r, *rest, activations=activations, direction=direction, **attributes)
    functions = recurrences.activations_of(
        LAYER, activations, activation_alpha, activation_beta, direction=direction
    )
    optional, quantizations = rest[:-4], rest[-4:]
    whole = RecurrentInputs(x, w.swapaxes(1, 2), r.swapaxes(1, 2), *optional)
    if whole.lens is not None:
        whole = whole._replace(lens=np.clip(whole.lens, 0, len(x)))
    results: list[tuple[Array, ...]] = []
    for number, backwards in enumerate(directions_of(direction)):
        inputs = of_direction(whole, number)
        if backwards:
            inputs = inputs._replace(x=time_reversed(x, whole.lens))
        parameters = [None if q is None else q[number] for q in quantizations]
        y, *states = _forward(inputs, parameters, functions[number], **attributes)
        results.append((time_reversed(y[:, 0], whole.lens) if backwards else y[:, 0], *states))
    y, h, c = zip(*results, strict=True)
    return np.stack(y, 1), np.concatenate(h), np.concatenate(c)


def _forward(
    inputs: RecurrentInputs[Array], parameters: Sequence[Any], functions: Sequence[recurrences.Activation], *,
    clip: float | None, input_forget: int, hidden_size: int | None,
) -> tuple[Array, ...]:  # fmt: skip
    """Return Y and the final states of one direction, forward in time.

    The state of a sequence that has ended is 0 in the quantization of the states of a step.
    """
    w_scale, w_zero, r_scale, r_zero = parameters
    w, r = _Weights(inputs.w[0].T, w_scale, w_zero), _Weights(inputs.r[0].T, r_scale, r_zero)
    lens = inputs.lens
    cells: list[Array] = []

    def cell(x: Array, _: int) -> tuple[Array, recurrences.RecurrentStep]:
        bias, p = (None if part is None else part[0] for part in (inputs.b, inputs.p))
        gates = w.multiplied(x.reshape(-1, x.shape[2])).reshape(*x.shape[:2], inputs.w.shape[1])
        if bias is not None:
            gates += bias.reshape(2, -1).sum(axis=0)
        limited = lstm_steps.limited(functions, clip)
        step = lstm_steps.step_of(r.multiplied, p, limited, coupled=input_forget != 0)

        def recorded(gates: Array, h: Array, c: Array) -> tuple[Array, ...]:
            h, c = step(gates, h, c)
            if lens is not None:
                h *= (lens > len(cells))[:, None]
            cells.append(c)
            return h, c

        return gates, recorded

    steps = len(inputs.x) if lens is None or not lens.size else int(lens.max())
    used = inputs._replace(x=inputs.x[:steps], lens=None)
    y, h, c = recurrences.recur(LAYER, used, cell, direction="forward", hidden_size=hidden_size)
    if lens is None:
        return y, h, c
    whole = np.zeros((len(inputs.x), *y.shape[1:]), y.dtype)
    whole[:steps] = y
    return whole, _at_ends(y[:, 0], inputs.h, lens), _at_ends(np.array(cells), inputs.c, lens)


def _at_ends(states: Array, initial: Array | None, lens: Array) -> Array:
    """Return the state (1, batch, hidden) of each sequence after its last step, of (time, batch, hidden)."""
    first = np.zeros((1, *states.shape[1:]), np.float32) if initial is None else initial
    return np.take_along_axis(np.concatenate([first, states]), lens[None, :, None], 0)


class _Weights:
    """Weights of one direction less their zero points, in a float type in which all products are exact."""

    def __init__(self, weights: Array, scale: Array, zero: Array) -> None:
        centred = quantization.centred(weights, np.asarray(zero))
        most = quantization.largest(centred, 0) * np.iinfo(np.uint8).max
        self._matrix = centred.astype(quantization.exact_kind(most), copy=False)
        self._scale = np.asarray(scale)

    def multiplied(self, x: Array) -> Array:
        """Return the product of rows, which are quantized by their common range, by the weights."""
        q, scale, zero = quantized_by_range(x)
        centred = q.astype(self._matrix.dtype) - zero
        return np.matmul(centred, self._matrix).astype(np.float32, copy=False) * (scale * self._scale)


@v1.body
def body(
    b: Builder, x: Value, w: Value, r: Value, /, *rest: Value | None, **attributes: Any
) -> tuple[Value, Value, Value]:
    parameters = [v for v in rest[-4:] if v is not None]
    bias, lens, h, c, p = rest[:-4]
    return DynamicLstm(b, x, w, r, bias, lens, h, c, p, parameters).written(**attributes)


v1.absent("gradient", "X and h are rounded to integers, which have no gradients")


@dynamic_quantize_lstm.examples
def one_step() -> Iterator[Example]:
    """One step of one unit, with functions that can be computed by hand; all numbers are exact."""
    f = np.float32
    for dtype in (np.uint8, np.int8):
        # X and h are 255 steps of 1; the gates i, o, f, g of W are 1, 2, 0, -1 halves, those of R 1, 0, 0, 1
        x, h = np.array([[[255]]], f), np.array([[[255]]], f)
        w, r = np.array([[[4, 5, 3, 2]]], dtype), np.array([[[1, 0, 0, 1]]], dtype)
        biases = np.array([[0, 0, 1, 0, -255, 0, 0, 0]], f)
        scales = np.array([0.5], f), np.array([3], dtype), np.array([1], f), np.array([0], dtype)
        functions: dict[str, Any] = {"activations": ["Relu", "Affine", "LeakyRelu"], "outputs": 3}
        # i = 127.5 + 255 - 255, o = 255, f = 1, g = -127.5 + 255: c = 2 + 127.5**2, h = 255 c
        call = x, w, r, biases, None, h, np.array([[[2]]], f)
        cell = 2 + 127.5**2
        y = np.array([[[[255 * cell]]]], f), np.array([[[255 * cell]]], f), np.array([[[cell]]], f)
        yield Example(1, *call, None, *scales, **functions, expect=[*y])


@dynamic_quantize_lstm.examples
def layers() -> Iterator[Example]:
    f, rng = np.float32, np.random.default_rng(0)
    x = rng.standard_normal((5, 3, 6)).astype(f)
    for dtype, count, direction in ((np.uint8, 1, "reverse"), (np.int8, 2, "bidirectional")):
        shape: dict[str, Any] = {"hidden_size": 4, "outputs": 3, "direction": direction}
        least = np.iinfo(dtype).min
        w, r = (rng.integers(least, least + 256, (count, n, 16)).astype(dtype) for n in (6, 4))
        b, p = (rng.standard_normal((count, n * 4)).astype(f) for n in (8, 3))
        states = rng.standard_normal((2, count, 3, 4)).astype(f)
        zeros = np.full((count, 16), least + 128).astype(dtype)
        one = np.full(count, 0.01, f), zeros[:, 0]
        each = rng.uniform(0.002, 0.01, (count, 16)).astype(f), zeros
        yield Example(1, x, w, r, None, None, None, None, None, *one, *each, **shape)
        yield Example(
            1, x, w, r, b, np.array([3, 1, 5], np.int32), *states, p, *each, *one, **shape, clip=0.5
        )
        fewer = b, np.array([3, 1, 2], np.int32), None, None, None
        yield Example(1, x, w, r, *fewer, *one, *one, **shape, input_forget=1)
        shape["activations"] = ["HardSigmoid", "Softsign", "Tanh"] * count
        yield Example(1, x[:1], w, r, b, None, *states, None, *one, *each, **shape)
    first = [q[:1] for q in (w, r, b, *one, *each)]
    yield Example(1, x[:, :1], *first[:3], None, None, None, None, *first[3:], outputs=3)
